import type { Manifest } from '../../api/index.js';
import type { PodTemplate } from '../pod.js';
import type { SandboxTemplateProps } from '../sandbox-template.js';
import { badLabel, identityRules } from './names.js';
import { trafficRules } from './network-policy.js';
import type { Rule } from './rule.js';

const at = 'spec.podTemplate';
const reserved = /^(agents\.x-k8s\.io|extensions\.agents\.x-k8s\.io)\//;

type TemplateSpec = Pick<SandboxTemplateProps, 'podTemplate' | 'networkPolicy' | 'networkPolicyManagement'>;
const specOf = (object: Manifest): TemplateSpec => object['spec'] as unknown as TemplateSpec;
const podTemplate = (object: Manifest): PodTemplate => specOf(object).podTemplate;

/** Rules of SandboxTemplate; its API accepts nearly anything and the Pod is refused later, or differs. */
export const sandboxTemplateRules: readonly Rule<Manifest>[] = [
  ...identityRules,
  {
    id: 'template/containers',
    kind: 'provider',
    because: 'the API accepts an empty list and no Pod is ever created',
    source: 'provider.md §1.2',
    check: (object) =>
      podTemplate(object).spec.containers.length > 0
        ? undefined
        : { field: `${at}.spec.containers`, found: [], allowed: 'at least one container' },
  },
  {
    id: 'template/container-names',
    kind: 'provider',
    because: 'containers merge by name',
    source: 'provider.md §1.2',
    check: (object) => {
      const { containers, initContainers = [] } = podTemplate(object).spec;
      const names = [...containers, ...initContainers].map(({ name }) => name);
      const twice = names.find((name, index) => names.indexOf(name) !== index);
      return twice === undefined
        ? undefined
        : { field: `${at}.spec.containers`, found: twice, allowed: 'one name for each container' };
    },
  },
  {
    id: 'template/env-names',
    kind: 'provider',
    because: 'of two variables with one name only the last counts, and server-side apply refuses the list',
    source: 'provider.md §1.2',
    check: (object) => {
      for (const [index, { env = [] }] of podTemplate(object).spec.containers.entries()) {
        const names = env.map(({ name }) => name);
        const twice = names.find((name, i) => names.indexOf(name) !== i);
        if (twice !== undefined)
          return { field: `${at}.spec.containers[${index}].env`, found: twice, allowed: 'one entry for each variable' };
      }
      return undefined;
    },
  },
  {
    id: 'template/pod-labels',
    kind: 'provider',
    because: 'labels of a template are checked only when the Pod is created: the claim then stays ReconcilerError',
    source: 'provider.md §1.7',
    check: (object) => badLabel(podTemplate(object).metadata?.labels, `${at}.metadata.labels`),
  },
  {
    id: 'template/reserved-keys',
    kind: 'provider',
    because: 'the provider drops its own keys from the Pod without a word',
    source: 'provider.md §3.1',
    check: (object) => {
      const { labels = {}, annotations = {} } = podTemplate(object).metadata ?? {};
      const key = [...Object.keys(labels), ...Object.keys(annotations)].find((name) => reserved.test(name));
      return key === undefined
        ? undefined
        : { field: `${at}.metadata`, found: key, allowed: 'keys outside agents.x-k8s.io and extensions.agents.x-k8s.io' };
    },
  },
  {
    id: 'template/unmanaged-policy',
    kind: 'provider',
    because: 'the provider creates no policy from it',
    source: 'provider.md §7',
    check: (object) => {
      const { networkPolicyManagement, networkPolicy } = specOf(object);
      return networkPolicyManagement === 'Unmanaged' && networkPolicy !== undefined
        ? { field: 'spec.networkPolicy', found: networkPolicy, allowed: 'nothing when networkPolicyManagement is Unmanaged' }
        : undefined;
    },
  },
  ...trafficRules({ field: 'spec.networkPolicy', of: (object) => specOf(object).networkPolicy }),
];
