//! Changes a setting of the server for what follows, in whichever way the server accepts.

use crate::client::PostgresClient;
use crate::cluster::Cluster;
use crate::error::PostgresError;
use crate::stream::StopCheck;
use std::time::{Duration, Instant};

/// A changed file of settings is read within moments.
const READ_WITHIN: Duration = Duration::from_secs(10);
const POLL: Duration = Duration::from_millis(5);

/// How the server accepts a new value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SettingScope {
    /// In a session (`SET`).
    Session,
    /// When it reads its settings again.
    Reload,
    /// When it starts.
    Restart,
}

/// A setting of a running server.
#[derive(Debug, Clone)]
pub struct ServerSetting {
    /// Its name.
    pub name: String,
    /// How it changes.
    pub scope: SettingScope,
    /// The values that it may have, where they are words.
    pub words: Option<Vec<String>>,
}

impl Cluster {
    /// A setting; `None` where this server has none of that name.
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
        let split = |text: &String| text.split(' ').map(str::to_owned).collect();
        Ok(Some(ServerSetting {
            name: name.to_owned(),
            scope,
            words: words.as_ref().map(split),
        }))
    }

    /// Changes a setting of the whole server; one of a session stays as it is.
    pub fn change(
        &self,
        setting: &ServerSetting,
        value: &str,
        stop: &StopCheck,
    ) -> Result<(), PostgresError> {
        let name = &setting.name;
        if setting.scope == SettingScope::Session {
            return Ok(());
        }
        let mut session = self.connect(stop)?;
        if session.value(&format!("SHOW {name}"))? == value {
            return Ok(());
        }
        session.query(&format!("ALTER SYSTEM SET {name} = '{value}'"))?;
        if setting.scope == SettingScope::Restart {
            drop(session);
            return self.restart(stop);
        }
        session.query("SELECT pg_reload_conf()")?;
        drop(session);
        let begun = Instant::now();
        while !self.has_value(name, value, stop)? {
            if begun.elapsed() > READ_WITHIN {
                let what = format!("{name} did not become {value}");
                return Err(PostgresError::Protocol(what));
            }
            std::thread::sleep(POLL);
        }
        Ok(())
    }

    fn has_value(&self, name: &str, value: &str, stop: &StopCheck) -> Result<bool, PostgresError> {
        let mut session = self.connect(stop)?;
        let is_set = session.value(&format!("SHOW {name}"))? == value;
        if !is_set || name != "io_workers" {
            return Ok(is_set);
        }
        // The server starts and ends them one by one.
        let running = "SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'io worker'";
        Ok(session.value(running)? == value)
    }
}

impl ServerSetting {
    /// Changes it in a session; one of the whole server stays as it is.
    pub fn set(&self, session: &mut PostgresClient, value: &str) -> Result<(), PostgresError> {
        match self.scope {
            SettingScope::Session => session
                .query(&format!("SET {} = '{value}'", self.name))
                .map(drop),
            SettingScope::Reload | SettingScope::Restart => Ok(()),
        }
    }
}
