import { App, Chart } from 'cdk8s';
import { ControllerInstall, CustomResourceDefinitions } from '../constructs/install/controller-install.js';
import { managedBy } from '../constructs/install/parts.js';
import { PublisherInstall } from '../constructs/install/publisher-install.js';
import { RuntimePoolClass } from '../constructs/runtime-pool-class.js';
import { renderApp } from './app.js';
import type { RenderedFile } from './app.js';
import { approveAll } from './approve.js';
import type { ApprovedClass } from './approve.js';
import { refuseDuplicates } from './order.js';
import type { Platform } from './platform.js';
import { reviewObjects } from './review.js';
import { classWarnings, publisherWarnings } from './warnings.js';
import { toYaml, toYamlStream } from './yaml.js';

/** First line of every file that we write; a file without it is not ours. */
export const header = '# Written by orka-workspaces synth. Change platform.yaml instead.\n';

/**
 * The whole output of a platform: `apply/` is for Argo CD, Flux or kubectl, `review/` is for eyes.
 * Pure: same platform, same bytes, on any host. `file` is what errors call the platform.
 */
export function distFiles(platform: Platform, file = 'platform.yaml'): readonly RenderedFile[] {
  const classes = approveAll(platform.classes, file);
  const applied = renderApp(applyApp(platform, classes)).map(({ path, text }) => ({ path: `apply/${path}`, text }));
  const reviewed = classes.flatMap(({ name, compiled, digest }) =>
    (['workspace', 'plain'] as const).map((family) => {
      const path = `review/${name}.${family}.yaml`;
      const objects = reviewObjects(compiled, family, { name, digest }, platform.namespaces.tasks[0] ?? 'default');
      refuseDuplicates(objects.map((manifest, index) => ({ at: `${path}, object ${index + 1}`, manifest })));
      const warnings = classWarnings(compiled).map((text) => `# Warning: ${text}\n`);
      return { path, text: warnings.join('') + toYamlStream(objects) };
    }),
  );
  const kustomization = toYaml({
    apiVersion: 'kustomize.config.k8s.io/v1beta1',
    kind: 'Kustomization',
    resources: applied.map(({ path }) => path),
  });
  return [{ path: 'kustomization.yaml', text: kustomization }, ...applied, ...reviewed]
    .map(({ path, text }) => ({ path, text: header + text }))
    .sort((a, b) => (a.path < b.path ? -1 : 1));
}

/** What the classes of a platform say and probably do not mean, each once, with the keys of the file. */
export function platformWarnings(platform: Platform, file = 'platform.yaml'): readonly string[] {
  const { publisher, controller, classes } = platform;
  const ofPublisher = publisher ? publisherWarnings(publisher, controller.apiServer !== undefined) : [];
  return [
    ...ofPublisher.map((text) => `${file}: ${text}`),
    ...approveAll(classes, file).flatMap(({ name, compiled }) =>
      classWarnings(compiled).map((text) => `${file}: classes.${name}.${text}`),
    ),
  ];
}

/** The numbers order the files for `kubectl apply -f`: kinds before objects, namespaces before what is in them. */
function applyApp(platform: Platform, classes: readonly ApprovedClass[]): App {
  const app = new App({ outdir: '/dev/null', recordConstructMetadata: false });
  new CustomResourceDefinitions(new Chart(app, '0000-crds'), 'crds');
  const { controller, metrics, namespaces, network, publisher } = platform;
  const install = new Chart(app, '0001-install');
  if (publisher) new PublisherInstall(install, 'publisher', { ...publisher, namespaces, network, metrics });
  new ControllerInstall(install, 'controller', {
    ...controller,
    namespaces,
    metrics,
    dns: network.dns,
    classes: platform.classes.map(({ spec }) => spec),
  });
  const classChart = new Chart(app, '0002-classes');
  for (const { name, compiled } of classes) {
    new RuntimePoolClass(classChart, name, {
      metadata: { name, namespace: namespaces.controller, labels: { ...managedBy } },
      spec: compiled.spec,
    });
  }
  return app;
}
