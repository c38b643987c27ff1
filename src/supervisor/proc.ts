/** Reads what the kernel keeps about a process in /proc. */
import { readFileSync } from 'node:fs';

/** One process for good: a pid comes again, with another start. */
export interface ProcessMark {
  readonly pid: number;
  /** When it began, in ticks since the kernel did. */
  readonly started: string;
}

/** When a process began, in ticks since the kernel did; `undefined` if there is none. */
export function startTime(pid: number): string | undefined {
  return afterName(procFile(pid, 'stat'))[19];
}

/** Fields of a stat file from the state on: the name before may hold spaces and parentheses. */
export function afterName(stat: string): readonly string[] {
  return stat
    .slice(stat.lastIndexOf(')') + 2)
    .trim()
    .split(' ')
    .filter((field) => field !== '');
}

/** Text of a file of a process, or of `<pid>/task/<thread>`; empty if it is gone. */
export function procFile(pid: number | string, name: string): string {
  try {
    return readFileSync(`/proc/${pid}/${name}`, 'utf8');
  } catch {
    return '';
  }
}
