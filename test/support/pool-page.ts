import type { Stage } from './pool-observation.js';

interface Situation {
  readonly row: string;
  readonly stage: Stage;
  readonly is: {
    readonly status?: string;
    readonly instance?: string;
    readonly effect?: string;
    readonly wait?: number;
  };
}

const intro = `<!-- Written from the tests: WRITE_DOCS=1 npm run jest -- pool/decide -->

# What is done with a pool, and when

Each row is a test in \`test/controller/pool/decide.test.ts\`, under the name of its situation. "From" is how far the pool had come before it;
the status is lifecycle/admission and, where it is set, the reason of RolloutReady; the instance on record is kept, dropped, or the one
that answered. An effect is the one thing that is done next, after the status was written; without one the pool is looked at again after the
time that stands there, or when something changes.

The rules are asked in this order: \`src/controller/pool/decide.ts\` for every pool, \`ending.ts\` for one that is not wanted, \`running.ts\` for one
that is.

Beyond the rows, \`decide.properties.test.ts\` says what holds in any situation: from wherever a pool is, a bounded number of steps leads to one that
serves, rests, is gone or says why it does neither; credentials are sent to the compared and bound Pod only; and nothing that is not owned is touched.
`;

const instances: Readonly<Record<string, string>> = { keep: 'kept', none: 'dropped', this: 'this one' };

/** Situations and what is done in them, as a page. */
export function pageOf(groups: readonly { readonly group: string; readonly rows: readonly Situation[] }[]): string {
  const titles = [...new Set(groups.map(({ group }) => group))];
  const sections = titles.map((title) => {
    const rows = groups.filter(({ group }) => group === title).flatMap((one) => one.rows);
    const lines = rows.map(({ row, stage, is }) => {
      const next = is.effect === undefined ? waitOf(is.wait) : `\`${is.effect}\``;
      return `| ${row} | ${stage} | ${is.status ?? 'as it is'} | ${instances[is.instance ?? ''] ?? ''} | ${next} |`;
    });
    const head = ['| Situation | From | Status | Instance | Next |', '|---|---|---|---|---|'];
    return [`## ${title.charAt(0).toUpperCase()}${title.slice(1)}`, '', ...head, ...lines].join('\n');
  });
  return `${[intro, ...sections].join('\n\n')}\n`;
}

function waitOf(wait: number | undefined): string {
  if (wait === undefined) return 'when something changes';
  return wait === 0 ? 'at once' : `after ${wait / 1000} s`;
}
