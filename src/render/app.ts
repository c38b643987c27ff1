import { Chart, Names } from 'cdk8s';
import type { ApiObject, App } from 'cdk8s';
import type { Construct } from 'constructs';
import type { Manifest } from '../api/index.js';
import { isClusterScoped } from '../constructs/cluster-scoped.js';
import { RenderError } from '../constructs/errors.js';
import { duplicates, orderedObjects } from './order.js';
import { documentSeparator, toYaml, YamlError } from './yaml.js';

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
  return [...ordered(root)].map(({ manifest }) => manifest);
}

/**
 * The files of an app, one a chart, named and numbered as cdk8s does: charts that others depend on come first. An object belongs to the
 * nearest chart around it. Identities are unique across the whole app. YAML that kubectl reads back as it was meant.
 */
export function renderApp(app: App): readonly RenderedFile[] {
  // Text at once: all manifests beside all texts would be the peak of memory.
  const byChart = new Map<Chart, string[]>();
  for (const { chart, manifest } of ordered(app)) {
    const own = byChart.get(chart);
    if (own) own.push(toYaml(manifest));
    else byChart.set(chart, [toYaml(manifest)]);
  }
  const charts = [...new Set([...byChart.keys(), ...app.charts])];
  const numbered = app.node.findAll().some((construct) => Chart.isChart(construct) && construct.node.dependencies.length > 0);
  return charts.flatMap((chart, index) => {
    const own = byChart.get(chart);
    if (!own) return [];
    const name = Names.toDnsLabel(chart, { includeHash: chart.node.scope !== app });
    const number = numbered ? `${String(index).padStart(4, '0')}-` : '';
    return [{ path: `${number}${name}.k8s.yaml`, text: own.join(documentSeparator) }];
  });
}

/** The objects of a valid tree in apply order, each rendered when it is asked for. */
function* ordered(root: Construct): Generator<{ readonly chart: Chart; readonly manifest: Manifest }> {
  validateTree(root);
  const refuse = duplicates();
  for (const object of orderedObjects(root)) {
    const manifest = withoutNamespace(jsonOf(object));
    refuse({ at: object.node.path, manifest });
    yield { chart: object.chart, manifest };
  }
}

/** cdk8s follows a value that contains itself until the stack ends. */
function jsonOf(object: ApiObject): Manifest {
  try {
    return object.toJson() as Manifest;
  } catch (cause) {
    // cdk8s wraps the error in one of its own.
    if (!String(cause).includes('Maximum call stack size exceeded')) throw cause;
    const allowed = 'no value that contains itself';
    throw new YamlError('depth', { at: object.node.path, found: 'nesting without an end', allowed }, { cause });
  }
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
    // The message says field, found and allowed already.
    if (message !== undefined) throw new RenderError('rule-violated', { at: `${construct.node.path}: ${message}` });
  }
}
