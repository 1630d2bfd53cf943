//! The user as whom the server runs: PostgreSQL refuses to run as root. Reads /etc/passwd only.

/// The user of the packages of PostgreSQL.
const SERVER_USER: &str = "postgres";
/// The overflow user of Linux, who owns nothing.
const OVERFLOW_USER: ServerUser = ServerUser {
    uid: 65534,
    gid: 65534,
};

/// A user and its group.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ServerUser {
    pub uid: u32,
    pub gid: u32,
}

impl ServerUser {
    /// The user of a server that root starts; `None` for any other user, who starts it as himself.
    pub(crate) fn needed() -> Option<Self> {
        let is_root = rustix::process::geteuid().is_root();
        is_root.then(|| {
            let users = std::fs::read_to_string("/etc/passwd").unwrap_or_default();
            of_passwd(&users)
        })
    }

    /// As an argument of the guard.
    pub(crate) fn to_argument(user: Option<Self>) -> String {
        user.map_or("-".to_owned(), |user| format!("{}:{}", user.uid, user.gid))
    }

    /// From an argument of the guard; the outer `None` is a mistake.
    pub(crate) fn of_argument(text: &str) -> Option<Option<Self>> {
        if text == "-" {
            return Some(None);
        }
        let (uid, gid) = text.split_once(':')?;
        Some(Some(Self {
            uid: uid.parse().ok()?,
            gid: gid.parse().ok()?,
        }))
    }
}

fn of_passwd(users: &str) -> ServerUser {
    let found = users.lines().find_map(|line| {
        let fields: Vec<&str> = line.split(':').collect();
        let user = ServerUser {
            uid: fields.get(2)?.parse().ok()?,
            gid: fields.get(3)?.parse().ok()?,
        };
        (fields[0] == SERVER_USER && user.uid != 0).then_some(user)
    });
    found.unwrap_or(OVERFLOW_USER)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn server_runs_as_a_user_without_rights() {
        let of = |text: &str| of_passwd(text).uid;
        let users = "root:x:0:0::/:/bin/sh\npostgres:x:101:102::/:/bin/sh\n";
        assert_eq!(of(users), 101);
        assert_eq!(
            of("root:x:0:0::/:/bin/sh\npostgres:x:0:0::/:/bin/sh\n"),
            65534
        );
        let user = ServerUser { uid: 7, gid: 8 };
        let back = |user| ServerUser::of_argument(&ServerUser::to_argument(user));
        assert_eq!(
            (back(Some(user)), back(None)),
            (Some(Some(user)), Some(None))
        );
        assert_eq!(ServerUser::of_argument("7"), None);
    }
}
