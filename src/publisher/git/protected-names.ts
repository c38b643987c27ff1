/** Code points that HFS+ ignores in names. Source: next_hfs_char() in git's utf8.c. */
const ignored = /[\u200c-\u200f\u202a-\u202e\u206a-\u206f\ufeff]/g;

/**
 * Whether some file system takes a name for `.git` or `.gitmodules`: git itself refuses to check such a name out, so a workspace cannot
 * have it. Source: repository.md §5.3 #2.
 */
export function isTakenForGit(name: string): boolean {
  const folded = name.replaceAll(ignored, '').toLowerCase();
  if (folded === '.git' || folded === '.gitmodules') return true;
  // NTFS drops spaces and dots at the end, and what follows a colon names a stream.
  const stem = name.toLowerCase().replace(/[ .]*(?::.*)?$/s, '');
  return stem === '.git' || stem === 'git~1' || stem === '.gitmodules' || isShortOfGitmodules(stem);
}

/** `gitmod~1` to `~4`, and names that NTFS makes of a hash when those are taken. Source: is_ntfs_dot_str() in git's path.c. */
function isShortOfGitmodules(stem: string): boolean {
  if (/^gitmod~[1-4]$/.test(stem)) return true;
  const [, start = '', digits = ''] = /^([^~]*)~([1-9]\d*)$/.exec(stem) ?? [];
  return start.length >= 2 && start.length + digits.length === 7 && 'gi7eba'.startsWith(start);
}
