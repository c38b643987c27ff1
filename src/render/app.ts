import type { App } from 'cdk8s';
import type { Construct } from 'constructs';
import type { Manifest } from '../api/index.js';
import { isClusterScoped } from '../constructs/cluster-scoped.js';
import { RenderError } from '../constructs/errors.js';
import type { Json } from '../lib/json.js';
import { orderedObjects, refuseDuplicates } from './order.js';
import { toYamlStream } from './yaml.js';

/** One file of an output folder. */
export interface RenderedFile {
  /** Relative, with `/`. */
  readonly path: string;
  readonly text: string;
}

/**
 * The manifests of a chart, of a whole app or of any construct, in apply order, after all validations.
 * Does what `Chart.toJson` does, but in linear time, without dropping anything and refusing duplicates and cycles.
 */
export function manifestsOf(root: Construct): readonly Manifest[] {
  validateTree(root);
  const objects = orderedObjects(root).map((object) => ({
    at: object.node.path,
    manifest: withoutNamespace(object.toJson() as Manifest),
  }));
  refuseDuplicates(objects);
  return objects.map(({ manifest }) => manifest);
}

/** The files of an app, one a chart, named as cdk8s names them. YAML that kubectl reads back as it was meant. */
export function renderApp(app: App): readonly RenderedFile[] {
  return app.charts.map((chart) => ({
    path: `${chart.node.id}.k8s.yaml`,
    text: toYamlStream(manifestsOf(chart) as unknown as readonly Json[]),
  }));
}

/** cdk8s writes the namespace of a chart on kinds that have none. */
function withoutNamespace(manifest: Manifest): Manifest {
  if (!isClusterScoped(manifest.kind)) return manifest;
  const { namespace: _namespace, ...metadata } = manifest.metadata;
  return { ...manifest, metadata };
}

function validateTree(root: Construct): void {
  for (const construct of root.node.findAll()) {
    const [message] = construct.node.validate();
    if (message !== undefined) throw new RenderError('rule-violated', { at: construct.node.path, allowed: message });
  }
}
