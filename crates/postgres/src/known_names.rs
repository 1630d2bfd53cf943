//! Names in a cluster that its guard, its sessions and the next run must agree on.

/// The directory of the cluster inside the target.
pub(crate) const CLUSTER_NAME: &str = "diskproof-postgres";
/// The data directory in it.
pub(crate) const DATA_NAME: &str = "data";
/// The superuser and only user.
pub(crate) const SUPER_USER: &str = "diskproof";
/// The order to start a server in the directory, which is made; a line to the guard.
pub(crate) const MADE: &str = "made";
/// The order to restart the server, a line to the guard.
pub(crate) const RESTART: &str = "restart";
