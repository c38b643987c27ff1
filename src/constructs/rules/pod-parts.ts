import type { V1Container, V1PodSpec } from '../pod-types.js';
import type { Manifest } from '../../api/index.js';
import type { PodTemplate } from '../pod.js';
import type { Broken, Rule } from './rule.js';

type Holder = Readonly<Record<'podTemplate' | 'template', PodTemplate>>;

/** Where an object has its Pod template. */
export const templateField = ({ kind }: Manifest): 'spec.podTemplate' | 'spec.template' =>
  kind === 'Deployment' ? 'spec.template' : 'spec.podTemplate';

/** The Pod template of a Sandbox, SandboxTemplate or Deployment. */
export function podTemplate(object: Manifest): PodTemplate {
  const { podTemplate: ofSandbox, template } = object['spec'] as unknown as Holder;
  return object.kind === 'Deployment' ? template : ofSandbox;
}

export interface PlacedContainer {
  readonly field: string;
  readonly container: V1Container;
}

/** All containers of a Pod with their places. */
export function containersOf(object: Manifest): readonly PlacedContainer[] {
  const { spec } = podTemplate(object);
  const placed = (list: readonly V1Container[] | undefined, name: string): readonly PlacedContainer[] =>
    (list ?? []).map((container, index) => ({ field: `${templateField(object)}.spec.${name}[${index}]`, container }));
  return [...placed(spec.initContainers, 'initContainers'), ...placed(spec.containers, 'containers')];
}

export const firstContainer = (object: Manifest, check: (placed: PlacedContainer) => Broken | undefined): Broken | undefined =>
  firstOf(containersOf(object), check);

/** What the first item that is wrong breaks. */
export function firstOf<T>(items: Iterable<T>, check: (item: T, index: number) => Broken | undefined): Broken | undefined {
  let index = 0;
  for (const item of items) {
    const broken = check(item, index++);
    if (broken) return broken;
  }
  return undefined;
}

/** A rule about the spec of a Pod; `field` is its place in the object. */
export function podSpecRule(
  rule: Pick<Rule<Manifest>, 'id' | 'because'>,
  check: (spec: V1PodSpec, field: string) => Broken | undefined,
): Rule<Manifest> {
  return {
    ...rule,
    kind: 'provider',
    source: 'provider.md §1.7',
    check: (object) => check(podTemplate(object).spec, `${templateField(object)}.spec`),
  };
}
