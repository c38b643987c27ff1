#!/usr/bin/env node
import { createRequire } from 'node:module';
import { Command, CommanderError } from 'commander';
import { CodedError } from '../lib/errors.js';
import type { PlanOptions } from './plan.js';

/** Exit codes: 0 done, 1 refused or different, 2 the call or its input cannot be used, 70 a defect of ours (EX_SOFTWARE). */
const exitCodes = { usage: 2, defect: 70 } as const;

const { version } = createRequire(import.meta.url)('orka-workspaces/package.json') as { readonly version: string };

const program = new Command('orka-workspaces')
  .description('Declarative, reviewable workspaces for coding agents on Kubernetes')
  .version(version)
  .exitOverride()
  .configureOutput({ outputError: (text, write) => write(text) });

// Each command loads its own modules: `plan` must answer before a person notices.
program
  .command('synth')
  .description('render platform.yaml into an output folder, as a whole or not at all')
  .option('--platform <file>', 'settings of the installation', 'platform.yaml')
  .option('--out <folder>', 'where to write', 'dist')
  .addHelpText(
    'after',
    '\nExamples:\n  $ orka-workspaces synth\n  $ orka-workspaces synth --platform staging.yaml --out dist-staging',
  )
  .action(async (options: { platform: string; out: string }) => (await import('./synth.js')).synth(options));

program
  .command('check')
  .description('compare an output folder with what synth would write now; exit 1 with a diff when they differ')
  .option('--platform <file>', 'settings of the installation', 'platform.yaml')
  .option('--out <folder>', 'the committed output', 'dist')
  .addHelpText('after', '\nExample:\n  $ orka-workspaces check || echo "run npm run synth and commit dist/"')
  .action(async (options: { platform: string; out: string }) => (await import('./check.js')).check(options));

const repeat = (file: string, files: readonly string[]): readonly string[] => [...files, file];
program
  .command('plan')
  .description('say what the controller would do with a Task: its verdict, the pool, and every object that it would create')
  .requiredOption('-f, --filename <file>', 'a Task and its Agents, repeatable; - reads standard input', repeat, [])
  .option('--platform <file>', 'settings of the installation', 'platform.yaml')
  .option('--class <file>', 'a RuntimePoolClass to plan with, instead of the classes of the platform')
  .option('--facts <file>', 'values of live facts, instead of place-holders')
  .option('-o, --output <form>', 'summary, yaml or json', 'summary')
  .option('--agent-sandbox-enabled [bool]', 'as the controller has it', 'true')
  .option('--acp-workspace-dispatch-enabled [bool]', 'as the controller has it', 'true')
  .option('--execution-workspace-default-provider <name>', 'as the controller has it')
  .addHelpText(
    'after',
    `
Examples:
  $ orka-workspaces plan -f task.yaml -f agent.yaml
  $ kubectl get task/smoke agent/coder -o yaml | orka-workspaces plan -f - -o yaml
  $ orka-workspaces plan -f smoke.yaml -o json | jq .pool.name
  $ orka-workspaces plan -f smoke.yaml --agent-sandbox-enabled=false

Exit code 0: accepted. 1: refused; the data is on stdout all the same. 2: the input cannot be planned.`,
  )
  .action(async (options: PlanOptions) => (await import('./plan.js')).plan(options));

// `… | head` has read enough; that is no failure.
process.stdout.on('error', (error: NodeJS.ErrnoException) => {
  process.exit(error.code === 'EPIPE' ? process.exitCode : report(error));
});

try {
  await program.parseAsync();
} catch (error) {
  process.exitCode = report(error);
}

function report(error: unknown): number {
  if (error instanceof CommanderError) return error.exitCode === 0 ? 0 : exitCodes.usage;
  if (error instanceof CodedError) {
    process.stderr.write(`error: ${error.message}\n`);
    return exitCodes.usage;
  }
  process.stderr.write(`error: ${error instanceof Error ? (error.stack ?? error.message) : String(error)}\n`);
  return exitCodes.defect;
}
