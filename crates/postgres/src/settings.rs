//! Changes settings of the server of a temporary cluster, in whichever way the server accepts them.

use crate::client::PostgresClient;
use crate::cluster::Cluster;
use crate::error::PostgresError;
use crate::stream::StopCheck;
use std::time::{Duration, Instant};

/// The longest that a server may take to use a changed setting. It reads its settings within
/// moments.
const READ_TIMEOUT: Duration = Duration::from_secs(10);
/// The pause before the value that the server uses is read again.
const READ_POLL: Duration = Duration::from_millis(5);

/// The moment at which the server accepts a new value of a setting.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SettingScope {
    /// A session sets it (`SET`).
    Session,
    /// The server takes it when it reads its settings again.
    Reload,
    /// The server takes it when it starts.
    Restart,
}

/// A setting of a running server.
#[derive(Debug, Clone)]
pub struct ServerSetting {
    /// The name of the setting.
    pub name: String,
    /// The server accepts a new value at this moment.
    pub scope: SettingScope,
    /// The setting accepts these words; `None` where it accepts numbers or any text.
    pub words: Option<Vec<String>>,
}

impl Cluster {
    /// Returns a setting; `None` where this server has none of that name. Names and values of this
    /// file go into statements as they are: they must come from this program, not from outside.
    pub fn setting(
        &self,
        name: &str,
        stop: &StopCheck,
    ) -> Result<Option<ServerSetting>, PostgresError> {
        let mut session = self.connect(stop)?;
        let rows = session.query(&format!(
            "SELECT context, array_to_string(enumvals, ' ') FROM pg_settings WHERE name = '{name}'"
        ))?;
        let Some([Some(context), words]) = rows.first().and_then(|row| row.first_chunk()) else {
            return Ok(None);
        };
        let scope = match context.as_str() {
            "user" | "superuser" => SettingScope::Session,
            "sighup" => SettingScope::Reload,
            _ => SettingScope::Restart,
        };
        Ok(Some(ServerSetting {
            name: name.to_owned(),
            scope,
            words: words
                .as_ref()
                .map(|text| text.split(' ').map(str::to_owned).collect()),
        }))
    }

    /// Changes a setting of the whole server, and returns when the server uses it. Does nothing for
    /// a setting of a session: [`ServerSetting::set`] changes that.
    pub fn change(
        &self,
        setting: &ServerSetting,
        value: &str,
        stop: &StopCheck,
    ) -> Result<(), PostgresError> {
        if setting.scope == SettingScope::Session {
            return Ok(());
        }
        let mut session = self.connect(stop)?;
        if session.value(&format!("SHOW {}", setting.name))? == value {
            return Ok(());
        }
        drop(session);
        self.set_for_server(setting, value, stop)
    }

    /// Sets a setting of the whole server back to its default, whatever the server shows now: after
    /// a change that failed, the other value may stand in its file and come with the next reload.
    pub fn put_back(
        &self,
        setting: &ServerSetting,
        default: &str,
        stop: &StopCheck,
    ) -> Result<(), PostgresError> {
        if setting.scope == SettingScope::Session {
            return Ok(());
        }
        match self.set_for_server(setting, default, stop) {
            Ok(()) => Ok(()),
            Err(PostgresError::Stopped) => Err(PostgresError::Stopped),
            Err(cause) => Err(PostgresError::NotPutBack {
                setting: setting.name.clone(),
                default: default.to_owned(),
                cause: Box::new(cause),
            }),
        }
    }

    /// Writes a value into the server's settings, and returns when the server uses it.
    fn set_for_server(
        &self,
        setting: &ServerSetting,
        value: &str,
        stop: &StopCheck,
    ) -> Result<(), PostgresError> {
        let name = &setting.name;
        let mut session = self.connect(stop)?;
        session.query(&format!("ALTER SYSTEM SET {name} = '{value}'"))?;
        if setting.scope == SettingScope::Restart {
            drop(session);
            return self.restart(stop);
        }
        session.query("SELECT pg_reload_conf()")?;
        drop(session);
        let begun = Instant::now();
        while !self.has_value(name, value, stop)? {
            if begun.elapsed() > READ_TIMEOUT {
                let what = format!("{name} did not become {value}");
                return Err(PostgresError::Protocol(what));
            }
            std::thread::sleep(READ_POLL);
        }
        Ok(())
    }

    /// True if new sessions use this value of a setting.
    fn has_value(&self, name: &str, value: &str, stop: &StopCheck) -> Result<bool, PostgresError> {
        let mut session = self.connect(stop)?;
        let is_set = session.value(&format!("SHOW {name}"))? == value;
        if !is_set || name != "io_workers" {
            return Ok(is_set);
        }
        // The server starts and ends the processes one by one after the setting has changed.
        let running = "SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'io worker'";
        Ok(session.value(running)? == value)
    }
}

impl ServerSetting {
    /// Changes it in a session. Does nothing for a setting of the whole server: [`Cluster::change`]
    /// changes that.
    pub fn set(&self, session: &mut PostgresClient, value: &str) -> Result<(), PostgresError> {
        match self.scope {
            SettingScope::Session => session
                .query(&format!("SET {} = '{value}'", self.name))
                .map(drop),
            SettingScope::Reload | SettingScope::Restart => Ok(()),
        }
    }
}
