import { TolerationSchema } from './execution.js';
import { define, resource } from './kind.js';
import { conditions, digest, dnsLabel, patterns, pinnedImage, selectorLabels } from './meta.js';
import { anything, choice, flag, int32, int64, list, map, object, optional, quantity, text, withOptions } from './schema.js';
import type { CelRule, Static } from './schema.js';
import { providerKind, resourceClass } from './runtime-pool.js';

const port = int32({ minimum: 1, maximum: 65535 });
const httpUrl = text({ minLength: 1, maxLength: 2048, pattern: patterns.httpUrl.pattern });
const podLabels = withOptions(selectorLabels, { description: 'Which Pods of the namespace. Empty: none, only the addresses.' });
const addresses = list(text({ maxLength: 64, pattern: patterns.cidr.pattern }), { maxItems: 16, set: true });
/** Addresses add to the Pods of a selector. */
const addressesOf = (description: string) => ({
  addresses: optional(withOptions(addresses, { description })),
  except: optional(withOptions(addresses, { description: 'Parts of these addresses that stay closed.' })),
});
const somewhere: CelRule = {
  rule: 'size(self.podLabels) > 0 || (has(self.addresses) && size(self.addresses) > 0)',
  message: 'podLabels, addresses or both are needed',
  fieldPath: '.podLabels',
};

const amounts = object({ cpu: quantity(), memory: quantity(), 'ephemeral-storage': quantity() });

const PatchOperationSchema = object(
  {
    op: choice(['add', 'remove', 'replace', 'move', 'copy', 'test']),
    path: text({ maxLength: 1024, pattern: patterns.jsonPointer.pattern }),
    from: optional(
      text({
        maxLength: 1024,
        pattern: patterns.jsonPointer.pattern,
        description: 'JSON pointer to the place that move and copy take from.',
      }),
    ),
    value: optional(anything({ description: 'The value that add, replace and test work with.' })),
  },
  {
    description: 'One operation of RFC 6902.',
    rules: [
      { rule: "(self.op in ['move', 'copy']) == has(self.from)", message: 'from belongs to move and copy, and only to them' },
    ],
  },
);
/** One RFC 6902 operation of a class patch. */
export type PatchOperation = Static<typeof PatchOperationSchema>;

const ClassPatchSchema = object(
  {
    target: object({
      kind: text({ minLength: 1, maxLength: 63, description: 'Kind of the rendered object, for example SandboxTemplate.' }),
      suffix: optional(
        text({
          minLength: 1,
          maxLength: 63,
          description: 'The part of its name after the pool, where a pool has several of that kind.',
        }),
      ),
    }),
    operations: list(PatchOperationSchema, { minItems: 1, maxItems: 64 }),
  },
  { description: 'A change to one rendered object. All rules run again after it, and it is part of the class digest.' },
);
/** A change to one rendered object of every pool of a class. */
export type ClassPatch = Static<typeof ClassPatchSchema>;

/** Schema of {@link RuntimePoolClassSpec}. */
export const RuntimePoolClassSpecSchema = object(
  {
    providerKind: withOptions(providerKind, { description: 'The agent in the image.' }),
    resourceClass,
    runtime: object({
      image: pinnedImage,
      adapterDigests: map(digest, {
        minProperties: 1,
        maxProperties: 32,
        description: 'Digests of the adapter and CLI builds in the image; part of the profile digest.',
      }),
    }),
    pod: object({
      runtimeClassName: optional(
        text({
          minLength: 1,
          maxLength: 253,
          pattern: patterns.dnsSubdomain.pattern,
          description: "Runtime class of the Pods. Absent: the cluster's default.",
        }),
      ),
      resources: object({ requests: amounts, limits: amounts }),
      volumes: object(
        { sessions: quantity(), tmp: quantity(), home: quantity() },
        { description: 'Size limits of the writable volumes.' },
      ),
      placement: object({ nodeSelector: selectorLabels, tolerations: list(TolerationSchema, { maxItems: 64 }) }),
    }),
    providerProxy: object(
      {
        url: httpUrl,
        namespace: dnsLabel,
        podLabels,
        ...addressesOf('Addresses of a proxy that runs with the network of its nodes: 10.0.0.5/32, fd00::5/128.'),
        podPort: withOptions(port, {
          description: "Port of the proxy's Pods, which network policy sees; not that of its Service.",
        }),
        tokenSecretRef: object(
          {
            name: text({ minLength: 1, maxLength: 253, pattern: patterns.dnsSubdomain.pattern }),
            key: text({ minLength: 1, maxLength: 253, pattern: patterns.secretKey.pattern }),
          },
          { description: "A Secret in the controller's namespace. Its value is never rendered." },
        ),
      },
      { description: 'The one way from a sandbox to a model.', rules: [somewhere] },
    ),
    network: object({
      runtimeNamespace: withOptions(dnsLabel, { description: 'Where sandboxes run. Never the namespace of a Task.' }),
      controller: object({
        namespace: dnsLabel,
        apiUrl: httpUrl,
        apiPort: port,
        ...addressesOf('Addresses of a controller that runs with the network of its nodes.'),
      }),
      dns: object(
        {
          namespace: dnsLabel,
          podLabels,
          ...addressesOf(
            'Addresses of DNS that runs with the network of the node, such as 169.254.20.10/32 of NodeLocal DNSCache.',
          ),
        },
        { rules: [somewhere] },
      ),
      artifacts: optional(
        object(
          {
            namespace: dnsLabel,
            podLabels,
            url: withOptions(httpUrl, { description: 'URL of the Service that hands out archives of repositories.' }),
            port: withOptions(port, {
              description: 'Port of its Pods, which network policy sees; not that of the Service.',
            }),
            ...addressesOf('Addresses of a publisher that runs with the network of its nodes.'),
          },
          {
            description: 'Where a sandbox downloads its repository. Absent: no Task of this class has a repository.',
            rules: [somewhere],
          },
        ),
      ),
    }),
    workspace: object({ maxArtifactBytes: int64({ minimum: 1 }) }),
    disruptionBudget: flag(),
    attestation: choice(['Strict', 'AdmissionAware'], {
      description:
        'How a Pod is compared with the reviewed one: as rendered, or with what a server-side dry run of admission makes of it.',
    }),
    patches: list(ClassPatchSchema, { maxItems: 64 }),
    approvedDigests: list(digest, {
      minItems: 1,
      maxItems: 4,
      set: true,
      description:
        'Digests of this class as compiled by the renderers that may serve it. Nothing is created for a class whose own digest is not here.',
    }),
  },
  {
    rules: [
      {
        rule: 'self.providerKind == oldSelf.providerKind',
        message: 'the providerKind of a class never changes; make another class',
        fieldPath: '.providerKind',
      },
      {
        rule: 'self.resourceClass == oldSelf.resourceClass',
        message: 'the resourceClass of a class never changes; make another class',
        fieldPath: '.resourceClass',
      },
    ],
  },
);

/** Schema of {@link RuntimePoolClassStatus}. */
export const RuntimePoolClassStatusSchema = object({
  observedGeneration: optional(int64({ minimum: 0 })),
  digest: optional(withOptions(digest, { description: 'The digest that the running controller computes for this class.' })),
  conditions: optional(conditions),
});

/** Schema of {@link RuntimePoolClass}. */
export const RuntimePoolClassSchema = resource('RuntimePoolClass', RuntimePoolClassSpecSchema, RuntimePoolClassStatusSchema, {
  description: 'Reviewed settings from which every pool of one provider kind and resource class is rendered.',
});

/** `spec` of a RuntimePoolClass: the reviewed settings of its pools. */
export type RuntimePoolClassSpec = Static<typeof RuntimePoolClassSpecSchema>;
/** `status` of a RuntimePoolClass: whether the controller may use it. */
export type RuntimePoolClassStatus = Static<typeof RuntimePoolClassStatusSchema>;
/** A RuntimePoolClass object: reviewed settings from which pools are rendered. */
export type RuntimePoolClass = Static<typeof RuntimePoolClassSchema>;

/** Names, schema and columns of the kind RuntimePoolClass, for {@link crd} and {@link validate}. */
export const runtimePoolClassKind = define({
  kind: 'RuntimePoolClass',
  shortNames: ['rtpc'],
  schema: RuntimePoolClassSchema,
  printerColumns: [
    { name: 'Provider', type: 'string', jsonPath: '.spec.providerKind' },
    { name: 'Class', type: 'string', jsonPath: '.spec.resourceClass' },
    { name: 'Ready', type: 'string', jsonPath: '.status.conditions[?(@.type=="Ready")].status' },
    { name: 'Reason', type: 'string', jsonPath: '.status.conditions[?(@.type=="Ready")].reason' },
    { name: 'Age', type: 'date', jsonPath: '.metadata.creationTimestamp' },
  ],
});
