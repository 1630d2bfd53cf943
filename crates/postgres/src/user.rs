//! Finds users in /etc/passwd: the one as whom the server runs, as PostgreSQL refuses to run as
//! root, and the one as whom a session connects.

/// The user of the packages of PostgreSQL.
const SERVER_USER: &str = "postgres";
/// The overflow user of Linux (/proc/sys/kernel/overflowuid in proc(5)), who owns nothing.
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
            Some(server_user_in(&read_passwd()))
        } else {
            None
        }
    }
}

/// The user as whom the guard starts programs, as an argument of the guard.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct GuardUser {
    /// `None` for the user that runs the guard itself.
    pub user: Option<ServerUser>,
}

impl GuardUser {
    /// `UID:GID`, or `-` for the user that runs the guard.
    pub(crate) fn to_argument(self) -> String {
        match self.user {
            Some(user) => format!("{}:{}", user.uid, user.gid),
            None => "-".to_owned(),
        }
    }

    /// Reads such an argument; `None` of any other text.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        if text == "-" {
            return Some(Self { user: None });
        }
        let (uid, gid) = text.split_once(':')?;
        let user = ServerUser {
            uid: uid.parse().ok()?,
            gid: gid.parse().ok()?,
        };
        Some(Self { user: Some(user) })
    }
}

/// The first user of this name that is not root, else the overflow user.
fn server_user_in(passwd: &str) -> ServerUser {
    for entry in passwd_entries(passwd) {
        if entry.name == SERVER_USER
            && let Some(user) = entry.user()
            && user.uid != 0
        {
            return user;
        }
    }
    OVERFLOW_USER
}

/// The text of /etc/passwd; empty where it cannot be read.
fn read_passwd() -> String {
    std::fs::read_to_string("/etc/passwd").unwrap_or_default()
}

/// A line of /etc/passwd (passwd(5)), as far as it is used here.
struct PasswdEntry<'a> {
    name: &'a str,
    uid: &'a str,
    gid: &'a str,
    home: &'a str,
}

impl PasswdEntry<'_> {
    /// The numbers of the user; `None` where one is not a number.
    fn user(&self) -> Option<ServerUser> {
        Some(ServerUser {
            uid: self.uid.parse().ok()?,
            gid: self.gid.parse().ok()?,
        })
    }
}

/// The entries of all lines that have the fields of one.
fn passwd_entries(passwd: &str) -> impl Iterator<Item = PasswdEntry<'_>> {
    passwd.lines().filter_map(|line| {
        let fields: Vec<&str> = line.split(':').collect();
        match fields.as_slice() {
            [name, _password, uid, gid, _comment, home, ..] => Some(PasswdEntry {
                name,
                uid,
                gid,
                home,
            }),
            _ => None,
        }
    })
}

/// The part that `field` takes from the entry of the user who runs this program; `None` without an
/// entry.
fn own_entry(field: fn(&PasswdEntry<'_>) -> String) -> Option<String> {
    let uid = rustix::process::geteuid().as_raw().to_string();
    let passwd = read_passwd();
    let own = passwd_entries(&passwd).find(|entry| entry.uid == uid)?;
    Some(field(&own))
}

/// The name of the user who runs this program; `None` where none is known.
pub(crate) fn name_of_user() -> Option<String> {
    own_entry(|entry| entry.name.to_owned())
}

/// The directory in which that user keeps files; `None` where none is known.
pub(crate) fn home_of_user() -> Option<String> {
    own_entry(|entry| entry.home.to_owned())
}

/// Makes this thread of root the user of this name, if there is one: over a Unix socket the server
/// trusts the user whom the kernel names (`peer`). The other threads stay root.
///
/// The user is changed last, because only root may change the groups.
pub(crate) fn become_user_of(role: &str) {
    use rustix::process::{Gid, Uid, geteuid};
    use rustix::thread::{set_thread_groups, set_thread_res_gid, set_thread_res_uid};
    let passwd = read_passwd();
    let Some(entry) = passwd_entries(&passwd).find(|entry| entry.name == role) else {
        return;
    };
    let Some(user) = entry.user() else {
        return;
    };
    if user.uid == 0 || !geteuid().is_root() {
        return;
    }
    let (uid, gid) = (Uid::from_raw(user.uid), Gid::from_raw(user.gid));
    // Where it fails, the thread connects as root, and the server decides if it may.
    let _ = set_thread_groups(&[gid]);
    let _ = set_thread_res_gid(gid, gid, gid);
    let _ = set_thread_res_uid(uid, uid, uid);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn server_runs_as_a_user_without_rights() {
        let uid_in = |passwd: &str| server_user_in(passwd).uid;
        let users = "root:x:0:0::/:/bin/sh\npostgres:x:101:102::/:/bin/sh\n";
        assert_eq!(uid_in(users), 101);
        let root_only = "root:x:0:0::/:/bin/sh\npostgres:x:0:0::/:/bin/sh\n";
        assert_eq!(uid_in(root_only), 65534);
        // Of several lines the first usable one counts.
        let twice = "postgres:x:0:0::/:/bin/sh\npostgres:x:101:102::/:/bin/sh\n";
        assert_eq!(uid_in(twice), 101);
        let user = ServerUser { uid: 7, gid: 8 };
        for user in [Some(user), None] {
            let argument = GuardUser { user };
            assert_eq!(GuardUser::parse(&argument.to_argument()), Some(argument));
        }
        assert_eq!(GuardUser::parse("7"), None);
    }
}
