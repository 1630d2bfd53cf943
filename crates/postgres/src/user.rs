//! Users by /etc/passwd: the one as whom the server runs, as PostgreSQL refuses to run as root, and
//! the one as whom a session connects.

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
        if rustix::process::geteuid().is_root() {
            Some(of_passwd(&passwd()))
        } else {
            None
        }
    }

    /// As an argument of the guard.
    pub(crate) fn to_argument(user: Option<Self>) -> String {
        match user {
            Some(user) => format!("{}:{}", user.uid, user.gid),
            None => "-".to_owned(),
        }
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
    let user_fields = passwd_fields(users, &|fields| {
        fields[0] == SERVER_USER && ids(fields).is_some_and(|user| user.uid != 0)
    });
    match user_fields {
        Some(fields) => ids(&fields).unwrap_or(OVERFLOW_USER),
        None => OVERFLOW_USER,
    }
}

fn passwd() -> String {
    std::fs::read_to_string("/etc/passwd").unwrap_or_default()
}

/// The fields of the line of /etc/passwd that `is_wanted` chooses.
fn passwd_fields<'a>(users: &'a str, is_wanted: &dyn Fn(&[&str]) -> bool) -> Option<Vec<&'a str>> {
    for line in users.lines() {
        let fields: Vec<&str> = line.split(':').collect();
        if fields.len() >= 6 && is_wanted(&fields) {
            return Some(fields);
        }
    }
    None
}

fn ids(fields: &[&str]) -> Option<ServerUser> {
    Some(ServerUser {
        uid: fields[2].parse().ok()?,
        gid: fields[3].parse().ok()?,
    })
}

/// A field of the user who runs this program.
fn own_field(index: usize) -> Option<String> {
    let uid = rustix::process::geteuid().as_raw().to_string();
    let users = passwd();
    let fields = passwd_fields(&users, &|fields| fields[2] == uid)?;
    Some(fields[index].to_owned())
}

/// The name of the user who runs this program.
pub(crate) fn name_of_user() -> Option<String> {
    own_field(0)
}

/// The directory in which that user keeps files; `None` where none is known.
pub(crate) fn home_of_user() -> Option<String> {
    own_field(5)
}

/// Makes this thread of root the user of this name, if there is one: over a Unix socket the server
/// trusts the user whom the kernel names (`peer`). The other threads stay root.
pub(crate) fn become_user_of(role: &str) {
    use rustix::process::{Gid, Uid, geteuid};
    use rustix::thread::{set_thread_groups, set_thread_res_gid, set_thread_res_uid};
    let users = passwd();
    let Some(fields) = passwd_fields(&users, &|fields| fields[0] == role) else {
        return;
    };
    let Some(user) = ids(&fields) else {
        return;
    };
    if user.uid == 0 || !geteuid().is_root() {
        return;
    }
    let (uid, gid) = (Uid::from_raw(user.uid), Gid::from_raw(user.gid));
    // Where it fails, the thread connects as root, and the server answers whether it may.
    let _ = set_thread_groups(&[gid]);
    let _ = set_thread_res_gid(gid, gid, gid);
    let _ = set_thread_res_uid(uid, uid, uid);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn server_runs_as_a_user_without_rights() {
        let of = |text: &str| of_passwd(text).uid;
        let users = "root:x:0:0::/:/bin/sh\npostgres:x:101:102::/:/bin/sh\n";
        assert_eq!(of(users), 101);
        let root_only = "root:x:0:0::/:/bin/sh\npostgres:x:0:0::/:/bin/sh\n";
        assert_eq!(of(root_only), 65534);
        // Of several lines the first usable one counts.
        let twice = "postgres:x:0:0::/:/bin/sh\npostgres:x:101:102::/:/bin/sh\n";
        assert_eq!(of(twice), 101);
        let user = ServerUser { uid: 7, gid: 8 };
        let back = |user| ServerUser::of_argument(&ServerUser::to_argument(user));
        assert_eq!(back(Some(user)), Some(Some(user)));
        assert_eq!(back(None), Some(None));
        assert_eq!(ServerUser::of_argument("7"), None);
    }
}
