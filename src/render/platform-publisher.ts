import { X509Certificate } from 'node:crypto';
import { isIPv4 } from 'node:net';
import { dnsLabel, patterns, pinnedImage } from '../api/index.js';
import type { RuntimePoolClassSpec } from '../api/index.js';
import { selectorLabels } from '../api/meta.js';
import { flag, int32, int64, list, object, optional, quantity, text, withOptions } from '../api/schema.js';
import type { Static, TSchema } from '../api/schema.js';
import { publisherPorts, publisherServiceName } from '../domain/publisher.js';
import type { Forge, PublisherSettings } from '../constructs/install/publisher-install.js';
import { badForgeRange } from '../constructs/rules/addresses.js';
import { badLabel } from '../constructs/rules/names.js';
import { publisherRole } from '../domain/labels.js';
import { overlaps } from '../lib/cidr.js';
import type { Finding } from '../lib/errors.js';
import { isPinnedImage, isUnbuiltImage, pinnedImageForm } from '../lib/image-reference.js';
import { quantityValue } from '../lib/quantity.js';

const described = <S extends TSchema>(schema: S, description: string): S => withOptions(schema, { description });

const port = int32({ minimum: 1, maximum: 65535 });
const httpsPort = 443;
const usualNamespace = 'orka-publisher';
const mebibyte = 1024 * 1024;

const defaultResources: PublisherSettings['resources'] = {
  requests: { cpu: '100m', memory: '256Mi', 'ephemeral-storage': '1Gi' },
  limits: { cpu: '2', memory: '2Gi', 'ephemeral-storage': '5Gi' },
};

const amounts = (of: keyof PublisherSettings['resources'], what: string) =>
  object(
    Object.fromEntries(
      (['cpu', 'memory', 'ephemeral-storage'] as const).map((name) => [
        name,
        optional(quantity({ default: String(defaultResources[of][name]), description: `${what} of ${name}.` })),
      ]),
    ),
    { description: `${what} of the publisher.` },
  );

const ForgeSchema = object(
  {
    host: text({
      minLength: 1,
      maxLength: 253,
      description: 'Host in the URLs of its repositories: a DNS name in lower case, or an IPv4 address.',
    }),
    port: optional(withOptions(port, { default: httpsPort, description: 'Port of HTTPS.' })),
    ca: optional(
      text({
        minLength: 1,
        maxLength: 16_384,
        description: 'PEM certificates of the authority that signed its certificate. Absent: those of the image.',
      }),
    ),
    private: optional(
      flag({
        default: false,
        description: 'The forge has a private address, and peer names it. Other forges are reached at public addresses only.',
      }),
    ),
    peer: optional(
      object(
        {
          cidr: optional(
            text({ maxLength: 64, pattern: patterns.cidr.pattern, description: 'Range of its addresses: 10.20.30.0/24.' }),
          ),
          namespace: optional(described(dnsLabel, 'Namespace of its Pods in this cluster.')),
          podLabels: optional(described(selectorLabels, 'Labels of its Pods.')),
          podPort: optional(
            described(
              port,
              'Port of its Pods, which a NetworkPolicy compares; the port of their Service may differ. Absent: the port of the forge.',
            ),
          ),
        },
        {
          description:
            'Addresses of a private forge: cidr, or namespace and podLabels of its Pods. NetworkPolicies open nothing else for it.',
        },
      ),
    ),
  },
  { description: 'One server of repositories.' },
);

const maximumBytes = 1024 * 1024 * mebibyte;
const limit = (minimum: number, maximum: number, description: string) => optional(int64({ minimum, maximum, description }));

/** What `platform.yaml` may say of the publisher. */
export const publisherSchema = object(
  {
    enabled: optional(flag({ default: false, description: 'Installs the publisher, so that Tasks may have repositories.' })),
    namespace: optional(
      withOptions(dnsLabel, {
        default: usualNamespace,
        description: 'Namespace of the publisher; nothing else runs there.',
      }),
    ),
    image: optional(
      described(pinnedImage, 'Image of the publisher, pinned by digest. It has git, unlike that of the controller.'),
    ),
    resources: optional(
      object(
        { requests: optional(amounts('requests', 'Request')), limits: optional(amounts('limits', 'Limit')) },
        { description: 'Resources of the publisher.' },
      ),
    ),
    storage: optional(
      object(
        {
          capacity: quantity({ description: 'Size of the volume, at least 1Gi.' }),
          storageClassName: optional(
            text({
              minLength: 1,
              maxLength: 253,
              pattern: patterns.dnsSubdomain.pattern,
              description: 'Storage class. Absent: that of the cluster.',
            }),
          ),
        },
        { description: 'Keeps journal and archives when the Pod is replaced. Absent: a volume of 2Gi that goes with the Pod.' },
      ),
    ),
    forges: optional(
      list(ForgeSchema, {
        maxItems: 32,
        default: [],
        description: 'Servers whose repositories Tasks may name. No other is ever reached.',
      }),
    ),
    limits: optional(
      object(
        {
          concurrentOperations: limit(
            1,
            64,
            'Reads of repositories that run at once; others are tried again for four minutes. One namespace never takes all of them. Absent: 4.',
          ),
          operationSeconds: limit(10, 3600, 'Seconds that one operation may take. Absent: 210.'),
          artifactStoreBytes: limit(256 * mebibyte, maximumBytes, 'Bytes of archives that the volume may hold. Absent: 1 GiB.'),
          cacheBytes: limit(0, maximumBytes, 'Bytes of earlier archives that the volume keeps for other Tasks. Absent: 512 MiB.'),
        },
        { description: 'Bounds that replace the defaults of the publisher.' },
      ),
    ),
  },
  { description: 'Reads repositories for Tasks. Absent: no Task has a repository.' },
);

export type PublisherInput = Static<typeof publisherSchema>;

/** The publisher of an installation, every default filled in; `undefined` = it is not enabled. */
export function publisherOf(given: PublisherInput | undefined): PublisherSettings | undefined {
  if (given?.enabled !== true) return undefined;
  const { resources = {}, storage, forges = [] } = given;
  return {
    namespace: given.namespace ?? usualNamespace,
    image: given.image ?? '',
    resources: {
      requests: { ...defaultResources.requests, ...resources.requests },
      limits: { ...defaultResources.limits, ...resources.limits },
    },
    ...(storage ? { storage } : {}),
    forges: forges.map(forgeOf),
    limits: { ...given.limits },
  };
}

function forgeOf({ host, port: at = httpsPort, ca, private: isPrivate = false, peer }: Static<typeof ForgeSchema>): Forge {
  return { host, port: at, ...(ca === undefined ? {} : { ca }), private: isPrivate, ...(peer ? { peer: peerOf(peer) } : {}) };
}

type PeerInput = NonNullable<Static<typeof ForgeSchema>['peer']>;

function peerOf({ cidr, namespace = '', podLabels = {}, podPort }: PeerInput): NonNullable<Forge['peer']> {
  if (cidr !== undefined) return { cidr };
  return { namespace, podLabels: podLabels, ...(podPort === undefined ? {} : { podPort }) };
}

/** Where sandboxes of this installation download. */
export function artifactsOf({ namespace }: PublisherSettings): NonNullable<RuntimePoolClassSpec['network']['artifacts']> {
  const url = `http://${publisherServiceName}.${namespace}.svc:${publisherPorts.artifacts}`;
  return { namespace, podLabels: publisherRole, url, port: publisherPorts.artifacts };
}

/** The forges as the controller knows them: `host`, or `host:port`. */
export const forgeAddresses = ({ forges }: PublisherSettings): readonly string[] =>
  forges.map(({ host, port: at }) => (at === httpsPort ? host : `${host}:${at}`));

type Conflict = Omit<Finding, 'at'>;

interface OtherNamespaces {
  readonly controller: string;
  readonly runtime: string;
  readonly tasks: readonly string[];
}

/** What the schema cannot say of a publisher. What is written is checked also while it is not enabled. */
export function publisherConflicts(given: PublisherInput | undefined, namespaces: OtherNamespaces): readonly Conflict[] {
  if (!given) return [];
  const { enabled = false, image, forges = [] } = given;
  return [
    ...namespaceConflicts(given, namespaces),
    ...imageConflicts(image, enabled),
    ...(enabled && forges.length === 0
      ? [{ field: 'publisher.forges', found: [], allowed: 'at least one forge, or enabled: false' }]
      : []),
    ...amountConflicts(given),
    ...forges.flatMap((forge, index) => forgeConflicts(forge, `publisher.forges[${index}]`)),
    ...twice(forges),
  ];
}

function namespaceConflicts(given: PublisherInput, { controller, runtime, tasks }: OtherNamespaces): readonly Conflict[] {
  const { enabled = false, namespace: found = usualNamespace, forges = [] } = given;
  const field = 'publisher.namespace';
  if (!enabled) return [];
  if ([controller, runtime, ...tasks].includes(found))
    return [{ field, found, allowed: 'a namespace other than those of the controller, the sandboxes and Tasks' }];
  if (forges.some(({ peer }) => peer?.namespace === found))
    return [{ field, found, allowed: 'a namespace without a forge: a NetworkPolicy closes all Pods of it' }];
  if (found === 'default' || found.startsWith('kube-'))
    return [{ field, found, allowed: 'a namespace of its own: install sets its labels' }];
  return [];
}

function imageConflicts(found: string | undefined, enabled: boolean): readonly Conflict[] {
  const field = 'publisher.image';
  if (found === undefined) return enabled ? [{ field, found, allowed: pinnedImageForm }] : [];
  if (!isPinnedImage(found)) return [{ field, found, allowed: pinnedImageForm }];
  return isUnbuiltImage(found) ? [{ field, found, allowed: 'the digest of an image that exists' }] : [];
}

/** Less than two archives of the largest size, beside the journal, is no use. */
const leastCapacity = '1Gi';

function amountConflicts({ storage, resources }: PublisherInput): readonly Conflict[] {
  const conflicts: Conflict[] = [];
  const value = (amount: string | number): bigint => quantityValue(amount) ?? 0n;
  if (storage && value(storage.capacity) < value(leastCapacity))
    conflicts.push({ field: 'publisher.storage.capacity', found: storage.capacity, allowed: `at least ${leastCapacity}` });
  for (const name of ['cpu', 'memory', 'ephemeral-storage'] as const) {
    const request = resources?.requests?.[name] ?? defaultResources.requests[name];
    const most = resources?.limits?.[name] ?? defaultResources.limits[name];
    const refuse = (of: string, found: string | number, allowed: string) =>
      void conflicts.push({ field: `publisher.resources.${of}.${name}`, found, allowed });
    if (value(request) <= 0n) refuse('requests', request, 'a positive quantity such as 250m or 1Gi');
    else if (value(most) < value(request)) refuse('limits', most, `at least the request, ${request}`);
  }
  return conflicts;
}

function forgeConflicts(forge: Static<typeof ForgeSchema>, at: string): readonly Conflict[] {
  const { host, ca, private: isPrivate = false, peer } = forge;
  const badHost = hostProblem(host);
  const badCa = ca === undefined ? undefined : caProblem(ca);
  return [
    ...(badHost === undefined ? [] : [{ field: `${at}.host`, found: host, allowed: badHost }]),
    // What stands there may be a private key.
    ...(badCa === undefined ? [] : [{ field: `${at}.ca`, foundKind: badCa, allowed: 'PEM certificates, and nothing else' }]),
    ...(isPrivate && !peer
      ? [{ field: `${at}.peer`, found: undefined, allowed: 'cidr, or namespace and podLabels: a private forge needs it' }]
      : []),
    ...(!isPrivate && peer ? [{ field: `${at}.peer`, found: peer, allowed: 'no peer, or private: true beside it' }] : []),
    ...(peer ? peerConflicts(peer, `${at}.peer`) : []),
  ];
}

function peerConflicts(peer: PeerInput, field: string): readonly Conflict[] {
  const { cidr, namespace, podLabels = {}, podPort } = peer;
  if (cidr !== undefined) {
    if (namespace !== undefined || peer.podLabels !== undefined || podPort !== undefined)
      return [{ field, found: peer, allowed: 'cidr alone, or namespace and podLabels' }];
    const bad = badForgeRange(cidr);
    return bad === undefined ? [] : [{ field: `${field}.cidr`, found: cidr, allowed: bad }];
  }
  if (namespace === undefined || Object.keys(podLabels).length === 0)
    return [{ field, found: peer, allowed: 'cidr, or namespace and at least one of podLabels' }];
  const label = badLabel(podLabels, `${field}.podLabels`);
  return label ? [{ ...label, field: label.field ?? field }] : [];
}

/** Addresses that no forge has. Source: repository.md §1.2. */
const forbiddenRanges = ['0.0.0.0/32', '127.0.0.0/8', '169.254.0.0/16'];
const hostForm = 'a DNS name in lower case, or an IPv4 address that is not loopback, unspecified or link-local';

function hostProblem(host: string): string | undefined {
  // Resolvers read `127.1`, `0x7f.1` and `2130706433` as addresses.
  if (/(^|\.)(\d+|0x[0-9a-f]*)$/.test(host))
    return isIPv4(host) && !forbiddenRanges.some((range) => overlaps(`${host}/32`, range)) ? undefined : hostForm;
  return new RegExp(patterns.dnsSubdomain.pattern).test(host) && host !== 'localhost' ? undefined : hostForm;
}

const certificate = /-----BEGIN CERTIFICATE-----[A-Za-z0-9+/=\s]+-----END CERTIFICATE-----/g;

/** What a text holds that is no list of certificates; `undefined` = it is one. */
function caProblem(pem: string): string | undefined {
  if (pem.includes('PRIVATE KEY')) return 'a private key';
  const found = pem.match(certificate) ?? [];
  if (found.length === 0 || pem.replaceAll(certificate, '').trim() !== '') return 'text that is no certificate';
  return found.every(isCertificate) ? undefined : 'a certificate that cannot be read';
}

function isCertificate(pem: string): boolean {
  try {
    return new X509Certificate(pem).raw.length > 0;
  } catch {
    return false;
  }
}

function twice(forges: readonly Static<typeof ForgeSchema>[]): readonly Conflict[] {
  const addresses = forges.map(({ host, port: at = httpsPort }) => `${host}:${at}`);
  return addresses.flatMap((found, index) =>
    addresses.indexOf(found) < index ? [{ field: `publisher.forges[${index}]`, found, allowed: 'each host and port once' }] : [],
  );
}
