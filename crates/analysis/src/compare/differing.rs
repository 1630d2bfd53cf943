//! Names the conditions in which two measurements can differ so that their figures are not
//! comparable. The codes stand in documents: a changed one breaks their readers. The other codes of
//! reasons are faults of one run: those of findings, and `StopFault`.

use diskproof_model::comparison::Reason;

/// A condition in which two measurements differ.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Differing {
    /// The order of the offsets.
    Access,
    /// The sizes of the requests.
    BlockSize,
    /// The use of the page cache, or of files what it held before.
    Cache,
    /// The workloads that ran at the same time.
    Company,
    /// The share of the blocks that hold only zeros.
    Content,
    /// The number of files.
    Count,
    /// The share of the surface that a survey read.
    Coverage,
    /// The requests that a worker keeps in flight.
    Depth,
    /// The number of directories.
    Directories,
    /// The I/O engine.
    Engine,
    /// The sizes of the files.
    FileSize,
    /// The share of the span that was written for the first time.
    Fill,
    /// The syncs of a step on files.
    Fsync,
    /// The time for which a search held its rate.
    Hold,
    /// The offered load.
    Load,
    /// The version of the measuring method.
    Method,
    /// The operations, or their shares.
    Mix,
    /// The operation of a survey.
    Operation,
    /// The order in which a step goes through its files.
    Order,
    /// The promise of a search.
    Promise,
    /// The part of the target.
    Span,
    /// The syncs of a workload.
    Sync,
    /// The kind of the target.
    TargetKind,
    /// The number of threads.
    Threads,
    /// The number of workers.
    Workers,
}

impl Differing {
    /// Every condition, in the order of their codes.
    const ALL: [Self; 25] = [
        Self::Access,
        Self::BlockSize,
        Self::Cache,
        Self::Company,
        Self::Content,
        Self::Count,
        Self::Coverage,
        Self::Depth,
        Self::Directories,
        Self::Engine,
        Self::FileSize,
        Self::Fill,
        Self::Fsync,
        Self::Hold,
        Self::Load,
        Self::Method,
        Self::Mix,
        Self::Operation,
        Self::Order,
        Self::Promise,
        Self::Span,
        Self::Sync,
        Self::TargetKind,
        Self::Threads,
        Self::Workers,
    ];

    /// The code of the reason in documents.
    pub(super) fn code(self) -> &'static str {
        match self {
            Self::Access => "access-differs",
            Self::BlockSize => "block-size-differs",
            Self::Cache => "cache-differs",
            Self::Company => "company-differs",
            Self::Content => "content-differs",
            Self::Count => "count-differs",
            Self::Coverage => "coverage-differs",
            Self::Depth => "depth-differs",
            Self::Directories => "directories-differ",
            Self::Engine => "engine-differs",
            Self::FileSize => "file-size-differs",
            Self::Fill => "fill-differs",
            Self::Fsync => "fsync-differs",
            Self::Hold => "hold-differs",
            Self::Load => "load-differs",
            Self::Method => "method-differs",
            Self::Mix => "mix-differs",
            Self::Operation => "operation-differs",
            Self::Order => "order-differs",
            Self::Promise => "promise-differs",
            Self::Span => "span-differs",
            Self::Sync => "sync-differs",
            Self::TargetKind => "target-kind-differs",
            Self::Threads => "threads-differ",
            Self::Workers => "workers-differ",
        }
    }

    /// The condition of a reason; `None` of a fault of one run.
    pub(super) fn of_reason(reason: &Reason) -> Option<Self> {
        Self::ALL
            .into_iter()
            .find(|differing| differing.code() == reason.code)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reason(code: &str) -> Reason {
        Reason {
            code: code.to_owned(),
            why: String::new(),
        }
    }

    /// The codes are a contract with the readers of comparisons: none is renamed or removed.
    #[test]
    fn codes_of_conditions_are_stable() {
        let codes = Differing::ALL.map(Differing::code);
        assert_eq!(
            codes,
            [
                "access-differs",
                "block-size-differs",
                "cache-differs",
                "company-differs",
                "content-differs",
                "count-differs",
                "coverage-differs",
                "depth-differs",
                "directories-differ",
                "engine-differs",
                "file-size-differs",
                "fill-differs",
                "fsync-differs",
                "hold-differs",
                "load-differs",
                "method-differs",
                "mix-differs",
                "operation-differs",
                "order-differs",
                "promise-differs",
                "span-differs",
                "sync-differs",
                "target-kind-differs",
                "threads-differ",
                "workers-differ",
            ]
        );
    }

    #[test]
    fn condition_is_found_by_its_code_and_a_fault_is_none() {
        for differing in Differing::ALL {
            let found = Differing::of_reason(&reason(differing.code()));
            assert_eq!(found, Some(differing));
        }
        for fault in ["few-blocks", "unwritten-blocks", "io-errors", "hung"] {
            assert_eq!(Differing::of_reason(&reason(fault)), None, "{fault}");
        }
    }
}
