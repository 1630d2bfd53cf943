//! Gives the words of the command line for each kind of task: the flags that give it less to do,
//! and the reason why it cannot be measured in slots.

use diskproof_model::plan::Task;

/// The words for a kind of task.
pub(super) struct TaskWords {
    /// Behind the advice to measure longer; empty where no flag makes it shorter.
    pub or_less: &'static str,
    /// Why it has no slots, for `--together`.
    pub no_slots: &'static str,
}

/// The words for a task.
pub(super) fn task_words(task: &Task) -> TaskWords {
    match task {
        Task::Workloads(_) => TaskWords {
            or_less: ", or less (smaller blocks, a smaller --size)",
            no_slots: "this plan decides by its results what comes next",
        },
        Task::Survey(_) => TaskWords {
            or_less: "",
            no_slots: "a survey reads as fast as the disk allows. On a device use 'check --skip \
                       curve,access,burst'",
        },
        Task::Ping(_) => TaskWords {
            or_less: ", or fewer requests (-c)",
            no_slots: "single requests have no rate",
        },
        Task::Files(_) => TaskWords {
            or_less: ", or fewer files (-n)",
            no_slots: "operations on files have no fixed length",
        },
        Task::Inserts(_) => TaskWords {
            or_less: "",
            no_slots: "a PostgreSQL server has no slots",
        },
        Task::Accept(_) => TaskWords {
            or_less: "",
            no_slots: "an acceptance test has no fixed length",
        },
    }
}
