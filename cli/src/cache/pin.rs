//! `nectarine cache pin`, `nectarine cache unpin`: the statements, for each fingerprint.

use crate::exec::Shell;
use crate::failure::Result;

/// One after the other; the first that fails ends it.
pub(super) fn all(shell: &mut Shell, verb: &str, fingerprints: &[String]) -> Result<()> {
    let view = shell.view.clone();
    for fingerprint in fingerprints {
        let sql = format!("{verb} ENTRY '{}'", fingerprint.replace('\'', "''"));
        shell.print_answer(&sql, &view, None)?;
    }
    Ok(())
}
