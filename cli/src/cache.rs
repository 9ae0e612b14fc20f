//! `nectarine cache`: looking after cached results.

mod pin;
mod warm;

pub(crate) use self::warm::read as read_script;

use std::io::Write;

use nectarine_engine::{CacheStats, Collected, Engine};

use crate::args::CacheTask;
use crate::exec::{Flow, Shell};
use crate::failure::{Failure, Result};
use crate::print::{Expanded, View};

/// Does what was asked for.
pub(crate) fn run(shell: &mut Shell, engine: &Engine, task: &CacheTask) -> anyhow::Result<Flow> {
    Ok(match carry_out(shell, engine, task) {
        Ok(()) => Flow::Done,
        Err(failure) => shell.fail(&failure, None),
    })
}

fn carry_out(shell: &mut Shell, engine: &Engine, task: &CacheTask) -> Result<()> {
    let cache = engine.cache();
    let runtime = shell.runtime.clone();
    let failed = |error| Failure::Statement { error, sql: String::new() };
    let view = shell.view.clone();
    match task {
        CacheTask::Ls => {
            let sql = "SELECT left(fingerprint, 12) AS fingerprint, kind, rows, bytes, round(cost_ms, 1) AS cost_ms, \
                       uses, round(saved_ms, 1) AS saved_ms, last_used_at, \
                       CASE WHEN pinned THEN '*' ELSE '' END AS pinned, left(sql, 60) AS sql \
                       FROM system.cache_entries ORDER BY cost_ms DESC";
            shell.print_answer(sql, &view, None).map(|_| ())
        }
        CacheTask::Show { fingerprint } => {
            let key = runtime.block_on(cache.find(fingerprint)).map_err(failed)?;
            let sql = format!("SELECT * FROM system.cache_entries WHERE fingerprint = '{key}'");
            let view = View { expanded: Expanded::On, ..view };
            shell.print_answer(&sql, &view, None).map(|_| ())
        }
        CacheTask::Rm { fingerprints } => {
            let mut keys = vec![];
            for beginning in fingerprints {
                keys.push(runtime.block_on(cache.find(beginning)).map_err(failed)?);
            }
            runtime.block_on(cache.remove(&keys));
            shell.terminal.say(&format!("deleted {}", counted(keys.len())));
            Ok(())
        }
        CacheTask::Clear => {
            let n_entries = runtime.block_on(cache.clear());
            shell.terminal.say(&format!("deleted {}", counted(n_entries)));
            Ok(())
        }
        CacheTask::Pin { fingerprints } => pin::all(shell, "PIN", fingerprints),
        CacheTask::Unpin { fingerprints } => pin::all(shell, "UNPIN", fingerprints),
        CacheTask::Verify => {
            let (n_entries, faults) = runtime.block_on(cache.verify()).map_err(failed)?;
            match faults.as_slice() {
                [] => {
                    shell.terminal.say(&format!("verified {}", counted(n_entries)));
                    Ok(())
                }
                faults => {
                    let lines: Vec<_> = faults.iter().map(|(key, fault)| format!("{key}: {fault}")).collect();
                    let n = counted(faults.len());
                    Err(Failure::new(format!("{n} of {n_entries} can not be used\n{}", lines.join("\n"))))
                }
            }
        }
        CacheTask::Warm(args) => warm::warm(shell, args),
        CacheTask::Provenance { dot: false, fingerprint } => {
            let sql = match fingerprint {
                Some(beginning) => {
                    let key = runtime.block_on(cache.find(beginning)).map_err(failed)?;
                    format!("EXPLAIN PROVENANCE ENTRY '{key}'")
                }
                None => "EXPLAIN PROVENANCE ALL".to_owned(),
            };
            shell.print_answer(&sql, &view, None).map(|_| ())
        }
        CacheTask::Provenance { dot: true, fingerprint } => {
            let key = match fingerprint {
                Some(beginning) => Some(runtime.block_on(cache.find(beginning)).map_err(failed)?),
                None => None,
            };
            let text = runtime.block_on(cache.provenance_dot(key)).map_err(failed)?;
            shell.output.write_all(text.as_bytes())?;
            Ok(shell.output.flush()?)
        }
        CacheTask::Stats => {
            let CacheStats { budget, reserved, evicted, evicted_bytes, undeleted, .. } =
                runtime.block_on(cache.stats()).map_err(failed)?;
            let sql = format!(
                "SELECT count(*) AS results, coalesce(sum(bytes), 0) AS bytes, coalesce(sum(uses), 0) AS uses, \
                 round(coalesce(sum(cost_ms), 0) / 1000, 1) AS computed_in_s, \
                 round(coalesce(sum(saved_ms), 0) / 1000, 1) AS saved_s, {budget} AS budget, {reserved} AS reserved, \
                 {evicted} AS evicted, {evicted_bytes} AS evicted_bytes, {undeleted} AS undeleted \
                 FROM system.cache_entries"
            );
            shell.print_answer(&sql, &view, None).map(|_| ())
        }
        CacheTask::Collect => {
            let collected = runtime.block_on(cache.collect()).map_err(failed)?;
            shell.terminal.say(&told(&collected));
            Ok(())
        }
    }
}

fn told(collected: &Collected) -> String {
    let Collected { parts, unfinished, foreign, bytes, entries, lists, processes, left, left_bytes } = collected;
    let kinds = [(parts, "that no result has"), (unfinished, "unfinished"), (foreign, "that no computation made")];
    let n_files: usize = kinds.iter().map(|(n, _)| **n).sum();
    let named: Vec<_> = kinds.iter().filter(|(n, _)| **n > 0).map(|(n, what)| format!("{n} {what}")).collect();
    let mut told = match n_files {
        0 => "removed no files".to_owned(),
        n => format!("removed {n} files of {bytes} bytes ({})", named.join(", ")),
    };
    let others = [
        (entries, "results whose files are gone"),
        (lists, "lists of extents that no result has"),
        (processes, "leases of processes that died"),
    ];
    for (n, what) in others.into_iter().filter(|(n, _)| **n > 0) {
        told.push_str(&format!(", {n} {what}"));
    }
    if *left > 0 {
        told.push_str(&format!("; {left} files of {left_bytes} bytes could not be deleted"));
    }
    told
}

fn counted(n: usize) -> String {
    match n {
        1 => "1 result".to_owned(),
        n => format!("{n} results"),
    }
}
