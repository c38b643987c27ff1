import { define, dnsLabel, patterns, pinnedImage, RuntimePoolClassSpecSchema, validate } from '../api/index.js';
import type { RuntimePoolClassSpec } from '../api/index.js';
import { flag, int32, list, map, object, optional, text, withOptions } from '../api/schema.js';
import type { ObjectSchema, Static, TSchema } from '../api/schema.js';
import { digest, selectorLabels } from '../api/meta.js';
import type { ApiServer } from '../constructs/install/controller-install.js';
import { apiServiceName } from '../constructs/install/controller-install.js';
import type { PublisherSettings } from '../constructs/install/publisher-install.js';
import { badAddress } from '../constructs/rules/addresses.js';
import type { Addresses } from '../constructs/rules/addresses.js';
import { defaultOf, settingConflicts, settings, settingsOf } from '../domain/settings.js';
import type { InstallationSettings, Setting, SettingName } from '../domain/settings.js';
import { CodedError, describeFinding } from '../lib/errors.js';
import type { Finding } from '../lib/errors.js';
import { fieldPath, isObject } from '../lib/json.js';
import type { Json, Path } from '../lib/json.js';
import { isPinnedImage, pinnedImageForm } from '../lib/image-reference.js';
import { isDnsLabel } from '../lib/kubernetes-names.js';
import { atClassKey, classProblems } from './class-problems.js';
import { artifactsOf, forgeAddresses, publisherConflicts, publisherOf, publisherSchema } from './platform-publisher.js';
import { readYaml } from './yaml-read.js';

/** Of the Service of an API server, and of the server itself. Network plugins compare either. */
const usualApiServerPorts = [443, 6443];

/** `platform.yaml` is not what it must be; nothing was written. */
class PlatformError extends CodedError<'platform-invalid'> {}

/** All members optional, at every depth: what `classes` may leave to the defaults. */
function loose<S extends TSchema>(schema: S): S {
  if (schema['type'] !== 'object' || schema['properties'] === undefined) return schema;
  const { required: _required, 'x-kubernetes-validations': _rules, ...rest } = schema as unknown as ObjectSchema;
  const properties = Object.fromEntries(Object.entries(rest.properties).map(([name, member]) => [name, optional(loose(member))]));
  return { ...rest, properties } as unknown as S;
}

const { approvedDigests: _approvedDigests, ...classMembers } = RuntimePoolClassSpecSchema.properties;
const ClassSchema = object({
  ...(Object.fromEntries(
    Object.entries(classMembers).map(([name, member]) => [name, optional(loose(member as TSchema))]),
  ) as Record<string, TSchema>),
  providerKind: classMembers.providerKind,
  runtime: classMembers.runtime,
  alsoApprove: optional(
    list(digest, {
      maxItems: 3,
      set: true,
      default: [],
      description: 'Class digests of other renderers that stay approved during an upgrade.',
    }),
  ),
});

const dnsDefaults = { namespace: 'kube-system', podLabels: { 'k8s-app': 'kube-dns' } };

const described = <S extends TSchema>(schema: S, description: string): S => withOptions(schema, { description });

/** What `platform.yaml` may hold. {@link readPlatform} and the JSON schema for editors come from it. */
export const platformSchema = object({
  version: int32({ minimum: 1, maximum: 1, description: 'Format of this file.' }),
  namespaces: described(
    object({
      controller: settings.controllerNamespace.schema,
      runtime: settings.runtimeNamespace.schema,
      tasks: settings.taskNamespaces.schema,
    }),
    'Namespaces of the installation. They do not overlap.',
  ),
  controller: object(
    {
      image: described(pinnedImage, 'Image of the controller, pinned by digest.'),
      replicas: optional(
        int32({ minimum: 0, maximum: 10, default: 1, description: 'Pods of the controller. One leads, the others wait.' }),
      ),
      api: optional(described(object({ port: optional(settings.apiPort.schema) }), 'API that sandboxes reach.')),
      addresses: classMembers.network.properties.controller.properties.addresses,
      except: classMembers.network.properties.controller.properties.except,
      apiServer: optional(
        object(
          {
            addresses: list(text({ maxLength: 64, pattern: patterns.cidr.pattern }), {
              minItems: 1,
              maxItems: 16,
              set: true,
              description: 'CIDRs of the API server and of its Service.',
            }),
            ports: optional(
              list(int32({ minimum: 1, maximum: 65535 }), {
                minItems: 1,
                maxItems: 4,
                set: true,
                default: usualApiServerPorts,
                description: 'Ports of the API server and of its Service.',
              }),
            ),
          },
          { description: 'Limits the traffic of the controller to the API server. Absent: not limited.' },
        ),
      ),
      idlePoolTtl: optional(settings.idlePoolTtl.schema),
      maxTasksPerNamespace: optional(settings.maxTasksPerNamespace.schema),
      tasks: optional(
        described(object({ ttlSecondsAfterFinished: optional(settings.taskTtlSeconds.schema) }), 'Defaults of finished Tasks.'),
      ),
      paused: optional(flag({ default: false, description: 'No new Task begins; those that run go on.' })),
      defaultProvider: optional(settings.defaultProvider.schema),
      gates: optional(
        described(
          object({
            agentSandbox: optional(settings.agentSandboxEnabled.schema),
            workspaceDispatch: optional(settings.workspaceDispatchEnabled.schema),
          }),
          'Switches of workspaces. A Task that they do not allow is refused.',
        ),
      ),
    },
    { description: 'Deployment and settings of the controller.' },
  ),
  metrics: optional(
    object(
      {
        podMonitor: optional(
          flag({ default: false, description: 'Renders a PodMonitor of the Prometheus operator for the controller.' }),
        ),
        scrapeFrom: optional(
          list(dnsLabel, {
            set: true,
            default: [],
            description: 'Namespaces whose Pods may reach metrics and probes of the controller.',
          }),
        ),
      },
      { description: 'Scraping of the controller.' },
    ),
  ),
  dns: optional(
    object(
      {
        namespace: optional(withOptions(dnsLabel, { default: dnsDefaults.namespace, description: 'Namespace of the DNS Pods.' })),
        podLabels: optional(
          withOptions(selectorLabels, { default: dnsDefaults.podLabels, description: 'Labels of the DNS Pods.' }),
        ),
        addresses: classMembers.network.properties.dns.properties.addresses,
        except: classMembers.network.properties.dns.properties.except,
      },
      { description: 'DNS of the cluster, for all classes.' },
    ),
  ),
  publisher: optional(publisherSchema),
  classes: map(ClassSchema, { description: 'RuntimePoolClasses by name. One for each provider kind and resource class.' }),
});

/** Settings of one installation, every default filled in. */
export interface Platform {
  readonly namespaces: InstallationSettings['namespaces'];
  readonly controller: Omit<InstallationSettings, 'namespaces'> & {
    readonly image: string;
    readonly replicas: number;
    /** Absent: what the controller may reach is not limited. */
    readonly apiServer?: ApiServer;
    readonly paused: boolean;
  };
  /** Who may scrape the controller, and whether a PodMonitor is rendered. */
  readonly metrics: { readonly podMonitor: boolean; readonly scrapeFrom: readonly string[] };
  /** Absent: it is not installed, and no Task has a repository. */
  readonly publisher?: PublisherSettings;
  /** Where DNS and the controller are, as every class has it that says nothing else. */
  readonly network: Pick<RuntimePoolClassSpec['network'], 'controller' | 'dns'>;
  readonly classes: readonly PlatformClass[];
}

/** One class of `platform.yaml`, every default filled in. */
export interface PlatformClass {
  readonly name: string;
  /** Without digests of its own; synth computes the one of this renderer. */
  readonly spec: Omit<RuntimePoolClassSpec, 'approvedDigests'>;
  /** Digests of other renderers that stay approved during an upgrade. */
  readonly alsoApprove: readonly string[];
}

const platformKind = define({ kind: 'Platform', schema: platformSchema, printerColumns: [] });

/**
 * Reads `platform.yaml`. Unknown keys are errors, as are two classes for one provider kind and resource class.
 * All problems of the file are one error: first those of its shape; without any, conflicts and rules of all classes together.
 */
export function readPlatform(text: string, file: string): Platform {
  const documents = readYaml(text, file);
  const [document] = documents;
  if (!document || documents.length > 1) {
    throw new PlatformError('platform-invalid', { at: file, found: `${documents.length} documents`, allowed: 'one document' });
  }
  const empty = nulls(document.value, []).map(fieldPath);
  const misshapen = validate(platformKind, document.value).filter(({ field }) => !empty.includes(field));
  refuseAll([
    ...empty.map((field) => ({ at: file, field, ...nullFinding })),
    ...misshapen.map(({ field, found, allowed }) => ({ at: file, field, found, allowed })),
  ]);
  const written = document.value as unknown as Static<typeof platformSchema>;
  const platform = withDefaults(written);
  const conflicts = [...conflictsOf(platform), ...publisherConflicts(written.publisher, platform.namespaces)].map(
    (conflict): Finding => ({ at: file, ...conflict }),
  );
  const problems = platform.classes.flatMap((one) => problemsOf(one, written.classes[one.name] as ClassInput, file));
  const known = new Set(conflicts.map(({ field }) => field));
  // A key of the whole file is wrong in each class that inherits it, and one problem.
  const once = new Map(problems.filter(({ field }) => !known.has(field)).map((finding) => [describeFinding(finding), finding]));
  refuseAll([...conflicts, ...once.values()]);
  return platform;
}

function problemsOf({ name, spec }: PlatformClass, given: ClassInput, file: string): readonly Finding[] {
  return classProblems({ ...spec, approvedDigests: [] })
    .map(({ finding }) => atClassKey(finding, name, file))
    .map((finding) => ({ ...finding, field: inheritedField(finding.field, name, given) ?? finding.field }));
}

/** Where a class without such a member takes it from. */
const inherited = [
  ['runtimeNamespace', 'namespaces.runtime'],
  ['controller.namespace', 'namespaces.controller'],
  ['controller.addresses', 'controller.addresses'],
  ['controller.except', 'controller.except'],
  ['dns.namespace', 'dns.namespace'],
  ['dns.podLabels', 'dns.podLabels'],
  ['dns.addresses', 'dns.addresses'],
  ['dns.except', 'dns.except'],
] as const;

/** The key that the author wrote, for a field of a class that comes from the rest of the file. */
function inheritedField(field: string | undefined, name: string, { network }: ClassInput): string | undefined {
  for (const [member, source] of inherited) {
    const key = `classes.${name}.network.${member}`;
    const path = member.split('.');
    const own = path.reduce<unknown>((value, step) => (isObject(value) ? value[step] : undefined), network);
    if (own === undefined && field?.startsWith(key)) return source + field.slice(key.length);
  }
  return undefined;
}

/** Throws all problems as one error; each is a line. */
export function refuseAll(findings: readonly Finding[]): void {
  if (findings.length === 0) return;
  const [first, ...more] = findings;
  if (first && more.length === 0) throw new PlatformError('platform-invalid', first);
  throw new PlatformError('platform-invalid', { at: findings.map(describeFinding).join('\nerror: ') });
}

function withDefaults(written: Static<typeof platformSchema>): Platform {
  const { namespaces, controller, metrics, dns, classes } = written;
  const publisher = publisherOf(written.publisher);
  const apiPort = controller.api?.port ?? defaultOf('apiPort');
  const network: RuntimePoolClassSpec['network'] = {
    runtimeNamespace: namespaces.runtime,
    controller: {
      namespace: namespaces.controller,
      apiUrl: `http://${apiServiceName}.${namespaces.controller}.svc:${apiPort}`,
      apiPort,
      ...addressesOf(controller),
    },
    dns: {
      namespace: dns?.namespace ?? dnsDefaults.namespace,
      podLabels: dns?.podLabels ?? dnsDefaults.podLabels,
      ...addressesOf(dns),
    },
    ...(publisher ? { artifacts: artifactsOf(publisher) } : {}),
  };
  return {
    namespaces,
    controller: {
      image: controller.image,
      replicas: controller.replicas ?? 1,
      apiPort,
      ...(controller.apiServer ? { apiServer: { ports: usualApiServerPorts, ...controller.apiServer } } : {}),
      idlePoolTtl: controller.idlePoolTtl ?? defaultOf('idlePoolTtl'),
      ...(controller.maxTasksPerNamespace === undefined ? {} : { maxTasksPerNamespace: controller.maxTasksPerNamespace }),
      ...(controller.tasks?.ttlSecondsAfterFinished === undefined
        ? {}
        : { taskTtlSeconds: controller.tasks.ttlSecondsAfterFinished }),
      paused: controller.paused ?? false,
      defaultProvider: controller.defaultProvider ?? defaultOf('defaultProvider'),
      gates: {
        agentSandbox: controller.gates?.agentSandbox ?? defaultOf('agentSandboxEnabled'),
        workspaceDispatch: controller.gates?.workspaceDispatch ?? defaultOf('workspaceDispatchEnabled'),
      },
      ...(publisher ? { forges: forgeAddresses(publisher), publisherNamespace: publisher.namespace } : {}),
    },
    metrics: { podMonitor: metrics?.podMonitor ?? false, scrapeFrom: metrics?.scrapeFrom ?? [] },
    ...(publisher ? { publisher } : {}),
    network: { controller: network.controller, dns: network.dns },
    classes: Object.entries(classes)
      .sort(([a], [b]) => (a < b ? -1 : 1))
      .map(([name, { alsoApprove, ...given }]) => ({
        name,
        spec: classWithDefaults(given as ClassInput, network),
        alsoApprove: alsoApprove ?? [],
      })),
  };
}

/** The first that gives addresses. Keys are left out where nothing is given, so that digests of classes without them stay. */
function addressesOf(...givers: readonly (Addresses | undefined)[]): Addresses {
  const { addresses, except } = givers.find((giver) => giver?.addresses !== undefined || giver?.except !== undefined) ?? {};
  return { ...(addresses === undefined ? {} : { addresses }), ...(except === undefined ? {} : { except }) };
}

/** The API server takes `null` for absent; in a reviewed file it is a slip. Values of patches may be anything. */
function nulls(value: Json, path: Path): readonly Path[] {
  if (path.at(-1) === 'value' && path.includes('operations')) return [];
  if (value === null) return [path];
  if (Array.isArray(value)) return (value as readonly Json[]).flatMap((item, index) => nulls(item, [...path, index]));
  return isObject(value)
    ? Object.entries(value).flatMap(([name, member]) => (member === undefined ? [] : nulls(member, [...path, name])))
    : [];
}

const nullFinding = { found: null, allowed: 'a value, or no such key' };

type Loose<T> = T extends readonly unknown[] ? T : T extends object ? { readonly [K in keyof T]?: Loose<T[K]> } : T;
type ClassInput = Loose<RuntimePoolClassSpec> & Pick<RuntimePoolClassSpec, 'providerKind' | 'runtime'>;

/** A class as platform.yaml has it, with the default of each member that is left out. */
export function classWithDefaults(given: ClassInput, network: RuntimePoolClassSpec['network']): PlatformClass['spec'] {
  const { pod = {}, providerProxy = {} } = given;
  return {
    providerKind: given.providerKind,
    resourceClass: given.resourceClass ?? 'standard',
    runtime: given.runtime,
    pod: {
      ...(pod.runtimeClassName === undefined ? {} : { runtimeClassName: pod.runtimeClassName }),
      resources: {
        requests: { cpu: '250m', memory: '512Mi', 'ephemeral-storage': '1Gi', ...pod.resources?.requests },
        limits: { cpu: '2', memory: '4Gi', 'ephemeral-storage': '5Gi', ...pod.resources?.limits },
      },
      volumes: { sessions: '4Gi', tmp: '512Mi', home: '256Mi', ...pod.volumes },
      placement: {
        nodeSelector: (pod.placement?.nodeSelector ?? {}) as Record<string, string>,
        tolerations: pod.placement?.tolerations ?? [],
      },
    },
    providerProxy: {
      url: providerProxy.url ?? 'http://vekil.vekil-system.svc:1337',
      namespace: providerProxy.namespace ?? 'vekil-system',
      podLabels: (providerProxy.podLabels ?? { 'orka.ai/network-role': 'provider-auth-proxy' }) as Record<string, string>,
      ...addressesOf(providerProxy),
      podPort: providerProxy.podPort ?? 1337,
      tokenSecretRef: { name: 'provider-proxy', key: 'token', ...providerProxy.tokenSecretRef },
    },
    network: {
      runtimeNamespace: given.network?.runtimeNamespace ?? network.runtimeNamespace,
      controller: { ...network.controller, ...given.network?.controller },
      dns: {
        namespace: given.network?.dns?.namespace ?? network.dns.namespace,
        podLabels: (given.network?.dns?.podLabels ?? network.dns.podLabels) as Record<string, string>,
        ...addressesOf(given.network?.dns, network.dns),
      },
      ...artifactsWithDefaults(given.network?.artifacts, network.artifacts),
    },
    workspace: { maxArtifactBytes: given.workspace?.maxArtifactBytes ?? 104857600 },
    disruptionBudget: given.disruptionBudget ?? true,
    attestation: given.attestation ?? 'Strict',
    patches: given.patches ?? [],
  };
}

type Artifacts = RuntimePoolClassSpec['network']['artifacts'];

/** The key is left out where nothing is given, so that digests of classes without a publisher stay. */
function artifactsWithDefaults(given: Loose<Artifacts>, inherited: Artifacts): { readonly artifacts?: NonNullable<Artifacts> } {
  if (given === undefined && inherited === undefined) return {};
  return { artifacts: { ...inherited, ...given } as NonNullable<Artifacts> };
}

/** Rules across the file. A sandbox never shares a namespace with Tasks or the controller: children carry no owner references. */
function conflictsOf(platform: Platform): readonly Omit<Finding, 'at'>[] {
  const conflicts: Omit<Finding, 'at'>[] = [];
  const refuse = (field: string, found: unknown, allowed: string): void => void conflicts.push({ field, found, allowed });
  const { namespaces, classes } = platform;
  if (!isPinnedImage(platform.controller.image)) refuse('controller.image', platform.controller.image, pinnedImageForm);
  for (const { setting, found, allowed } of settingConflicts(settingsOf({ ...platform.controller, namespaces })))
    refuse(keyOf(setting), found, allowed);
  for (const [field, name] of [
    ['controller', namespaces.controller],
    ['runtime', namespaces.runtime],
  ] as const) {
    if (name === 'default' || name.startsWith('kube-'))
      refuse(`namespaces.${field}`, name, 'a namespace of its own: install sets its labels');
  }
  const unusable = badAddress(platform.controller.apiServer ?? {}, 'controller.apiServer', 'service');
  if (unusable) conflicts.push(unusable);
  const seen = new Map<string, string>();
  for (const { name, spec } of classes) {
    if (!isDnsLabel(name)) refuse('classes', name, 'class names that are DNS labels of at most 63 characters');
    const pair = `${spec.providerKind}/${spec.resourceClass}`;
    const other = seen.get(pair);
    if (other !== undefined)
      refuse(`classes.${name}`, pair, `one class for each providerKind and resourceClass; ${other} is one already`);
    seen.set(pair, name);
    for (const [field, found, wanted] of [
      ['runtimeNamespace', spec.network.runtimeNamespace, namespaces.runtime],
      ['controller.namespace', spec.network.controller.namespace, namespaces.controller],
      ['controller.apiPort', spec.network.controller.apiPort, platform.controller.apiPort],
      ...(platform.publisher && spec.network.artifacts
        ? ([['artifacts.namespace', spec.network.artifacts.namespace, platform.publisher.namespace]] as const)
        : []),
    ] as const) {
      if (found !== wanted) refuse(`classes.${name}.network.${field}`, found, `${wanted}, as the rest of the file says`);
    }
    if (namespaces.tasks.includes(spec.providerProxy.namespace)) {
      refuse(
        'namespaces.tasks',
        spec.providerProxy.namespace,
        `namespaces other than that of the provider proxy of class ${name}`,
      );
    }
  }
  return conflicts;
}

function keyOf(name: SettingName): string {
  const { key, flag: flagName }: Setting = settings[name];
  return key ?? flagName;
}
