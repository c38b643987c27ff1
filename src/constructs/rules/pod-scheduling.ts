import type {
  V1NodeSelectorRequirement,
  V1NodeSelectorTerm,
  V1PodAffinityTerm,
  V1Toleration,
  V1TopologySpreadConstraint,
} from '../pod-types.js';
import type { Manifest } from '../../api/index.js';
import { isDnsLabel, isDnsSubdomain, isLabelValue, isQualifiedName } from '../../lib/kubernetes-names.js';
import { badLabel, badSelector, qualifiedName } from './names.js';
import { firstOf, podSpecRule } from './pod-parts.js';
import type { Broken, Rule } from './rule.js';

const later = 'the template is accepted; the API server refuses its Pods';

/** Rules of the API server for one toleration. */
export function badToleration(toleration: V1Toleration, field: string): Broken | undefined {
  const { key = '', operator = 'Equal', value = '', effect = '', tolerationSeconds } = toleration;
  if (!['Equal', 'Exists'].includes(operator)) return { field: `${field}.operator`, found: operator, allowed: 'Equal or Exists' };
  if (!['', 'NoSchedule', 'PreferNoSchedule', 'NoExecute'].includes(effect))
    return { field: `${field}.effect`, found: effect, allowed: 'NoSchedule, PreferNoSchedule or NoExecute' };
  if (key === '' && operator !== 'Exists')
    return { field: `${field}.key`, found: toleration.key, allowed: 'a key, or operator Exists, which tolerates all taints' };
  if (key !== '' && !isQualifiedName(key)) return { field: `${field}.key`, found: key, allowed: qualifiedName };
  if (operator === 'Exists' && value !== '')
    return { field: `${field}.value`, found: value, allowed: 'no value with operator Exists' };
  if (!isLabelValue(value)) return { field: `${field}.value`, found: value, allowed: 'a label value of at most 63 characters' };
  return tolerationSeconds !== undefined && effect !== 'NoExecute'
    ? { field: `${field}.tolerationSeconds`, found: tolerationSeconds, allowed: 'seconds with effect NoExecute only' }
    : undefined;
}

/** How many values an operator of a node selector takes. */
const nodeOperators: Readonly<Record<string, (count: number) => boolean>> = {
  In: (count) => count > 0,
  NotIn: (count) => count > 0,
  Exists: (count) => count === 0,
  DoesNotExist: (count) => count === 0,
  Gt: (count) => count === 1,
  Lt: (count) => count === 1,
};

function badNodeExpression({ key, operator, values = [] }: V1NodeSelectorRequirement, field: string): Broken | undefined {
  if (!isQualifiedName(key)) return { field: `${field}.key`, found: key, allowed: qualifiedName };
  const fits = Object.hasOwn(nodeOperators, operator) ? nodeOperators[operator] : undefined;
  if (!fits) return { field: `${field}.operator`, found: operator, allowed: Object.keys(nodeOperators).join(', ') };
  if (!fits(values.length))
    return {
      field: `${field}.values`,
      found: values,
      allowed: 'values for In and NotIn, one for Gt and Lt, none for Exists and DoesNotExist',
    };
  const bad = values.find((value) => !isLabelValue(value));
  return bad === undefined ? undefined : { field: `${field}.values`, found: bad, allowed: 'label values' };
}

function badNodeTerm({ matchExpressions, matchFields }: V1NodeSelectorTerm, field: string): Broken | undefined {
  const ofFields = ({ key, operator, values = [] }: V1NodeSelectorRequirement, index: number): Broken | undefined =>
    key === 'metadata.name' && ['In', 'NotIn'].includes(operator) && values.length === 1 && values.every(isDnsSubdomain)
      ? undefined
      : {
          field: `${field}.matchFields[${index}]`,
          found: { key, operator, values },
          allowed: 'metadata.name In or NotIn one name of a node',
        };
  return (
    firstOf(matchExpressions ?? [], (one, index) => badNodeExpression(one, `${field}.matchExpressions[${index}]`)) ??
    firstOf(matchFields ?? [], ofFields)
  );
}

/** Label keys whose values of the Pod itself are added to a selector. */
function badLabelKeys(
  { labelSelector, ...lists }: Pick<V1PodAffinityTerm, 'labelSelector' | 'matchLabelKeys' | 'mismatchLabelKeys'>,
  field: string,
): Broken | undefined {
  const { matchLabelKeys = [], mismatchLabelKeys = [] } = lists;
  const selected = [
    ...Object.keys(labelSelector?.matchLabels ?? {}),
    ...(labelSelector?.matchExpressions ?? []).map(({ key }) => key),
  ];
  const bad =
    [...matchLabelKeys, ...mismatchLabelKeys].find((key) => labelSelector === undefined || !isQualifiedName(key)) ??
    matchLabelKeys.find((key) => mismatchLabelKeys.includes(key) || selected.includes(key));
  return bad === undefined
    ? undefined
    : { field: `${field}.matchLabelKeys`, found: bad, allowed: 'label keys beside a labelSelector, each in one place' };
}

function badPodTerm(term: V1PodAffinityTerm, field: string): Broken | undefined {
  const { topologyKey, namespaces = [], labelSelector, namespaceSelector } = term;
  if (!isQualifiedName(topologyKey)) return { field: `${field}.topologyKey`, found: topologyKey, allowed: qualifiedName };
  const namespace = namespaces.find((name) => !isDnsLabel(name));
  if (namespace !== undefined) return { field: `${field}.namespaces`, found: namespace, allowed: 'DNS labels' };
  return (
    badSelector(labelSelector, `${field}.labelSelector`) ??
    badSelector(namespaceSelector, `${field}.namespaceSelector`) ??
    badLabelKeys(term, field)
  );
}

const badWeight = (weight: number, field: string): Broken | undefined =>
  weight >= 1 && weight <= 100 ? undefined : { field: `${field}.weight`, found: weight, allowed: '1 to 100' };

const [required, preferred] = [
  'requiredDuringSchedulingIgnoredDuringExecution',
  'preferredDuringSchedulingIgnoredDuringExecution',
] as const;

function badSpread(all: readonly V1TopologySpreadConstraint[], index: number, field: string): Broken | undefined {
  const constraint = all[index];
  if (constraint === undefined) return undefined;
  const { maxSkew, minDomains, topologyKey, whenUnsatisfiable } = constraint;
  if (maxSkew < 1) return { field: `${field}.maxSkew`, found: maxSkew, allowed: 'at least 1' };
  if (topologyKey === '') return { field: `${field}.topologyKey`, found: topologyKey, allowed: 'a key of a label' };
  if (!['DoNotSchedule', 'ScheduleAnyway'].includes(whenUnsatisfiable))
    return { field: `${field}.whenUnsatisfiable`, found: whenUnsatisfiable, allowed: 'DoNotSchedule or ScheduleAnyway' };
  if (minDomains !== undefined && (minDomains < 1 || whenUnsatisfiable !== 'DoNotSchedule'))
    return { field: `${field}.minDomains`, found: minDomains, allowed: 'at least 1, with DoNotSchedule only' };
  const policy = (['nodeAffinityPolicy', 'nodeTaintsPolicy'] as const).find(
    (name) => !['Honor', 'Ignore'].includes(constraint[name] ?? 'Honor'),
  );
  if (policy) return { field: `${field}.${policy}`, found: constraint[policy], allowed: 'Honor or Ignore' };
  const isTwin = (other: V1TopologySpreadConstraint) =>
    other.topologyKey === topologyKey && other.whenUnsatisfiable === whenUnsatisfiable;
  if (all.slice(0, index).some(isTwin))
    return { field, found: { topologyKey, whenUnsatisfiable }, allowed: 'one constraint for each topologyKey and action' };
  return badSelector(constraint.labelSelector, `${field}.labelSelector`) ?? badLabelKeys(constraint, field);
}

/** Where a Pod may run. */
export const schedulingRules: readonly Rule<Manifest>[] = [
  podSpecRule({ id: 'pod/node-selector', because: later }, ({ nodeSelector }, at) =>
    badLabel(nodeSelector, `${at}.nodeSelector`),
  ),
  podSpecRule({ id: 'pod/priority-class', because: later }, ({ priorityClassName = '' }, at) =>
    priorityClassName === '' || isDnsSubdomain(priorityClassName)
      ? undefined
      : { field: `${at}.priorityClassName`, found: priorityClassName, allowed: 'a DNS subdomain of at most 253 characters' },
  ),
  podSpecRule({ id: 'pod/tolerations', because: later }, ({ tolerations }, at) =>
    firstOf(tolerations ?? [], (one, index) => badToleration(one, `${at}.tolerations[${index}]`)),
  ),
  podSpecRule({ id: 'pod/node-affinity', because: later }, ({ affinity }, at) => {
    const { [required]: must, [preferred]: should } = affinity?.nodeAffinity ?? {};
    const field = `${at}.affinity.nodeAffinity`;
    const terms = must?.nodeSelectorTerms;
    if (terms?.length === 0)
      return { field: `${field}.${required}.nodeSelectorTerms`, found: terms, allowed: 'at least one term' };
    return (
      firstOf(terms ?? [], (term, index) => badNodeTerm(term, `${field}.${required}.nodeSelectorTerms[${index}]`)) ??
      firstOf(should ?? [], ({ weight, preference }, index) => {
        const place = `${field}.${preferred}[${index}]`;
        return badWeight(weight, place) ?? badNodeTerm(preference, `${place}.preference`);
      })
    );
  }),
  podSpecRule({ id: 'pod/pod-affinity', because: later }, ({ affinity }, at) =>
    firstOf(['podAffinity', 'podAntiAffinity'] as const, (side) => {
      const { [required]: must, [preferred]: should } = affinity?.[side] ?? {};
      const field = `${at}.affinity.${side}`;
      return (
        firstOf(must ?? [], (term, index) => badPodTerm(term, `${field}.${required}[${index}]`)) ??
        firstOf(should ?? [], ({ weight, podAffinityTerm }, index) => {
          const place = `${field}.${preferred}[${index}]`;
          return badWeight(weight, place) ?? badPodTerm(podAffinityTerm, `${place}.podAffinityTerm`);
        })
      );
    }),
  ),
  podSpecRule({ id: 'pod/topology-spread', because: later }, ({ topologySpreadConstraints: all = [] }, at) =>
    firstOf(all, (_, index) => badSpread(all, index, `${at}.topologySpreadConstraints[${index}]`)),
  ),
];
