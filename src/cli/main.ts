#!/usr/bin/env node
import { createRequire } from 'node:module';
import { Argument, Command } from 'commander';
import { controllerOptions } from './controller-options.js';
import type { DiffOptions } from './diff.js';
import type { PlanOptions } from './plan.js';
import { publisherOptions } from './publisher-options.js';
import { reported, watchOutputs } from './report.js';

const { version } = createRequire(import.meta.url)('orka-workspaces/package.json') as { readonly version: string };

const program = new Command('orka-workspaces')
  .description('Declarative, reviewable workspaces for coding agents on Kubernetes')
  .version(version)
  .exitOverride()
  .configureOutput({ outputError: (text, write) => write(text) });

const maxInputHelp = 'bytes that one file may have, as a quantity such as 100Mi (default: 32Mi)';

// Each command loads its own modules: `plan` must answer before a person notices.
program
  .command('synth')
  .description('render platform.yaml into an output folder, as a whole or not at all')
  .option('--platform <file>', 'settings of the installation', 'platform.yaml')
  .option('--out <folder>', 'where to write', 'dist')
  .addHelpText(
    'after',
    '\nExamples:\n  $ orka-workspaces synth\n  $ orka-workspaces synth --platform staging.yaml --out dist-staging' +
      '\n\nExit code 0: the folder is up to date. 2: the settings or the folder cannot be used. 70: a defect of ours.',
  )
  .action(async (options: { platform: string; out: string }) => (await import('./synth.js')).synth(options));

program
  .command('check')
  .description('compare an output folder with what synth would write now; exit 1 with a diff when they differ')
  .option('--platform <file>', 'settings of the installation', 'platform.yaml')
  .option('--out <folder>', 'the committed output', 'dist')
  .addHelpText(
    'after',
    '\nExample:\n  $ orka-workspaces check || echo "run npm run synth and commit dist/"' +
      '\n\nExit code 0: equal. 1: different. 2: the settings or the folder cannot be used. 70: a defect of ours.',
  )
  .action(async (options: { platform: string; out: string }) => (await import('./check.js')).check(options));

program
  .command('schema')
  .description('print the JSON schema (draft-07) of a file that people write, for editors')
  .addArgument(new Argument('<file>', 'platform: that of platform.yaml').choices(['platform']))
  .addHelpText(
    'after',
    `
Examples:
  $ orka-workspaces schema platform > platform.schema.json
  # yaml-language-server: $schema=./platform.schema.json      (first line of platform.yaml)`,
  )
  .action(async () => (await import('./schema.js')).schema());

const repeat = (value: string, values: readonly string[] = []): readonly string[] => [...values, value];
program
  .command('plan')
  .description('say what the controller would do with a Task: its verdict, the pool, and every object that it would create')
  .requiredOption('-f, --filename <file>', 'a Task and its Agents, repeatable; - reads standard input', repeat)
  .option('-n, --namespace <name>', 'namespace of documents that name none (default: default)')
  .option('--platform <file>', 'settings of the installation', 'platform.yaml')
  .option('--class <file>', 'a RuntimePoolClass to plan with, instead of the classes of the platform')
  .option('--facts <file>', 'a map of values of live facts, such as poolUid, instead of place-holders')
  .option('-o, --output <form>', 'summary, yaml or json', 'summary')
  .option('--max-input <size>', maxInputHelp)
  .option('--assume-enabled', 'answer as if the switches were on, the namespace served and the class approved')
  .option('--agent-sandbox-enabled [bool]', 'instead of controller.gates.agentSandbox of the platform')
  .option('--acp-workspace-dispatch-enabled [bool]', 'instead of controller.gates.workspaceDispatch of the platform')
  .option('--execution-workspace-default-provider <name>', 'instead of controller.defaultProvider of the platform')
  .option('--source-forge <host[:port]>', 'instead of publisher.forges of the platform, repeatable', repeat)
  .addHelpText(
    'after',
    `
Examples:
  $ orka-workspaces plan -f task.yaml -f agent.yaml
  $ kubectl get task/smoke agent/coder -o yaml | orka-workspaces plan -f - -o yaml
  $ orka-workspaces plan -f smoke.yaml -o json | jq .pool.name
  $ orka-workspaces plan -f smoke.yaml --assume-enabled

Verdicts are of the installed controller, by the platform file: accepted, refused, waiting (for an operator) or unseen (by any controller).
Exit code 0: accepted. 1: another verdict; the data is on stdout too. 2: the input cannot be planned. 70: a defect of ours.`,
  )
  .action(async (options: PlanOptions) => (await import('./plan.js')).plan(options));

program
  .command('diff')
  .description('say how a cluster differs from files: what an apply would change, what is missing, whose fields are in the way')
  .option('-f, --filename <file...>', 'manifests, repeatable; - reads standard input')
  .option('--dist [folder]', 'what the kustomization.yaml of an output folder lists (the folder dist, unless one is named)')
  .option('--kubeconfig <file>', 'how to reach the cluster (default: $KUBECONFIG, then ~/.kube/config)')
  .option('--context <name>', 'a context of the kubeconfig (default: its current one)')
  .option(
    '--field-manager <name>',
    'who applies the files: argocd-controller for Argo CD, kustomize-controller for Flux',
    'kubectl',
  )
  .option('--allow-manager <name>', 'whose further fields are expected, repeatable; an autoscaler for example', repeat, [])
  .option('--max-input <size>', maxInputHelp)
  .option('-o, --output <form>', 'text or json', 'text')
  .addHelpText(
    'after',
    `
Nothing is stored: the server is asked what a strict server-side apply would do. What the server writes itself, status included, does not count.

  same      an apply would change nothing
  changed   an apply would change it; the difference is shown
  conflict  an apply would be refused: others own fields that are wanted otherwise; each is named
  missing   not there yet; neither may be its namespace or its kind, when they are in the same files
  error     the server could not be asked, or would refuse the object

Fields that the files say nothing about are left to their managers, and named; of managers that are neither the control plane, the sandbox provider
nor the controller of orka-workspaces they count as drift. Values of Secrets are never shown.

Examples:
  $ orka-workspaces diff --dist
  $ orka-workspaces diff -f dist/apply/0000-crds.k8s.yaml dist/apply/0001-install.k8s.yaml --context staging
  $ kubectl kustomize overlays/staging | orka-workspaces diff -f - --field-manager argocd-controller
  $ orka-workspaces diff --dist -o json | jq -r '.objects[] | select(.state != "same") | .name'

Exit code 0: no drift. 1: something is changed, missing, in conflict, or has fields of another manager. 2: something could not be compared.
70: a defect of ours.`,
  )
  .action(async (options: DiffOptions) => (await import('./diff.js')).diff(options));

const controllerCommand = program
  .command('controller')
  .description('run Tasks in workspaces: the process of the Deployment that synth writes');
for (const option of controllerOptions()) controllerCommand.addOption(option);
controllerCommand
  .option('--kubeconfig <file>', 'its current context, for a controller outside of a cluster; inside, the Pod has what it needs')
  .addHelpText(
    'after',
    `
A flag wins over its environment variable; an empty variable counts as none. ORKA_LOG_LEVEL is debug, info (the default), warn or error.

Examples:
  $ orka-workspaces controller --controller-namespace orka-system --watch-namespace team-a --watch-namespace team-b
  $ orka-workspaces controller --controller-namespace orka-system --watch-namespace demo-magic --kubeconfig ~/.kube/config \\
      --agent-sandbox-enabled --acp-workspace-dispatch-enabled

Exit code 0: stopped by a signal. 1: leadership lost. 2: the settings cannot be used. 70: a defect of ours.`,
  )
  .action(async (_options: object, command: Command) => (await import('./controller.js')).controller(command, version));

const publisherCommand = program
  .command('publisher')
  .description('read repositories for the controller: the one process that runs git against forges');
for (const option of publisherOptions()) publisherCommand.addOption(option);
publisherCommand
  .addHelpText(
    'after',
    `
A flag wins over its environment variable; an empty variable counts as none. The config names the forges; every other host is refused:
  {"forges": [{"host": "github.com"}, {"host": "git.example", "port": 8443, "ca": "-----BEGIN CERTIFICATE-----…", "private": true}]}

Example:
  $ orka-workspaces publisher --config config.json --keys keys --data data --temp temp

Exit code 0: stopped by a signal. 2: settings, keys or a folder cannot be used. 70: a defect of ours.`,
  )
  .action(async (_options: object, command: Command) => (await import('./publisher.js')).publisher(command));

watchOutputs();

try {
  await program.parseAsync();
} catch (error) {
  process.exitCode = reported(error);
}
