import { App, Chart } from 'cdk8s';
import { agentPerUser } from './agent-per-user.js';
import { confinedAgent } from './confined-agent.js';
import { fleet } from './fleet.js';
import { injectedServer } from './injected-server.js';
import { jupyterlab } from './jupyterlab.js';
import { kata } from './kata.js';
import { lateBind } from './late-bind.js';
import { lifecycles } from './lifecycles.js';
import { notebooks } from './notebooks.js';
import { repository } from './repository.js';
import { sharedModels } from './shared-models.js';
import { sshBoxes } from './ssh-boxes.js';
import { teamNetworks } from './team-networks.js';
import { windows } from './windows.js';

/** Each example by its name; it fills a chart, whose namespace is that of its objects. */
export const examples: Readonly<Record<string, (chart: Chart) => void>> = {
  'agent-per-user': agentPerUser,
  'confined-agent': confinedAgent,
  fleet,
  'injected-server': injectedServer,
  jupyterlab,
  kata,
  'late-bind': lateBind,
  lifecycles,
  notebooks,
  repository,
  'shared-models': sharedModels,
  'ssh-boxes': sshBoxes,
  'team-networks': teamNetworks,
  windows,
};

/** An app with a chart and a namespace for each example. */
export function allExamples(): App {
  const app = new App();
  for (const [name, fill] of Object.entries(examples)) fill(new Chart(app, name, { namespace: name }));
  return app;
}
