import type { V1EnvVar, V1Probe } from './pod-types.js';
import type { RuntimePoolClassSpec } from '../api/index.js';
import { supervisorContainer } from '../domain/deployed.js';
import { isWorkspaceFacts } from '../domain/facts.js';
import type { Facts } from '../domain/facts.js';
import { annotationKeys, commonLabels } from '../domain/labels.js';
import { canonicalJson } from '../lib/canonical-json.js';
import type { PodTemplate } from './pod.js';

/** Port of the supervisor, named `control` in Service and probes. */
export const controlPort = 8080;
const authFolder = '/var/run/secrets/orka/auth';
const providerFolder = '/var/run/secrets/orka/provider';

/**
 * The Pod that hosts sessions. The supervisor is root only to give each session a uid of its own, hence the four capabilities.
 * A workspace Pod has no Secret at all: its credentials arrive signed, after attestation. Source: workload.md §3.4.
 */
export function supervisorPod(poolClass: RuntimePoolClassSpec, facts: Facts): PodTemplate {
  const { pod, runtime } = poolClass;
  const mounted = isWorkspaceFacts(facts) ? [] : secretVolumes(facts);
  return {
    metadata: {
      labels: commonLabels(facts),
      annotations: {
        [annotationKeys.profileDigest]: facts.profileDigest,
        [annotationKeys.tokenGeneration]: facts.tokenGeneration,
        [annotationKeys.pidsLimit]: '4096',
      },
    },
    spec: {
      nodeSelector: { 'kubernetes.io/os': 'linux', ...pod.placement.nodeSelector },
      ...(pod.placement.tolerations.length > 0
        ? { tolerations: pod.placement.tolerations.map((toleration) => ({ ...toleration })) }
        : {}),
      ...(pod.runtimeClassName === undefined ? {} : { runtimeClassName: pod.runtimeClassName }),
      automountServiceAccountToken: false,
      enableServiceLinks: false,
      terminationGracePeriodSeconds: 120,
      securityContext: { runAsUser: 0, runAsGroup: 0, seccompProfile: { type: 'RuntimeDefault' } },
      containers: [
        {
          name: supervisorContainer,
          image: runtime.image,
          imagePullPolicy: 'IfNotPresent',
          ports: [{ name: 'control', containerPort: controlPort, protocol: 'TCP' }],
          env: environment(poolClass, facts),
          securityContext: {
            runAsUser: 0,
            runAsGroup: 0,
            runAsNonRoot: false,
            allowPrivilegeEscalation: false,
            readOnlyRootFilesystem: true,
            privileged: false,
            capabilities: { drop: ['ALL'], add: ['CHOWN', 'KILL', 'SETGID', 'SETUID'] },
            seccompProfile: { type: 'RuntimeDefault' },
          },
          resources: { requests: amounts(pod.resources.requests), limits: amounts(pod.resources.limits) },
          startupProbe: health({
            failureThreshold: 30,
            periodSeconds: 2,
            timeoutSeconds: 1,
            successThreshold: 1,
          }),
          readinessProbe: health({ failureThreshold: 3, periodSeconds: 5, timeoutSeconds: 2 }),
          livenessProbe: health({ failureThreshold: 3, periodSeconds: 10, timeoutSeconds: 3 }),
          volumeMounts: [
            ...mounted.map(({ name, mountPath }) => ({ name, mountPath, readOnly: true })),
            { name: 'sessions', mountPath: '/sessions' },
            { name: 'tmp', mountPath: '/tmp' },
            { name: 'home', mountPath: '/home/worker' },
          ],
        },
      ],
      volumes: [
        ...mounted.map(({ name, secretName, keys }) => ({
          name,
          secret: { secretName, defaultMode: 0o400, items: keys.map((key) => ({ key, path: key, mode: 0o400 })) },
        })),
        { name: 'sessions', emptyDir: { sizeLimit: String(pod.volumes.sessions) } },
        { name: 'tmp', emptyDir: { sizeLimit: String(pod.volumes.tmp) } },
        { name: 'home', emptyDir: { sizeLimit: String(pod.volumes.home) } },
      ],
    },
  };
}

/** Quantities as text, the one spelling that no reader rewrites. */
function amounts(quantities: Readonly<Record<string, string | number>>): Record<string, string> {
  return Object.fromEntries(Object.entries(quantities).map(([name, quantity]) => [name, String(quantity)]));
}

function health(timing: Omit<V1Probe, 'httpGet'>): V1Probe {
  return { httpGet: { path: '/v2/health', port: 'control', scheme: 'HTTP' }, ...timing };
}

function secretVolumes(facts: Facts) {
  return [
    {
      name: 'pool-auth',
      mountPath: authFolder,
      secretName: facts.authSecretName,
      keys: ['controller-token', 'capability-secret'],
    },
    { name: 'provider-capability', mountPath: providerFolder, secretName: facts.providerSecretName, keys: ['token'] },
  ];
}

const withoutSlash = (url: string): string => url.trim().replace(/\/+$/, '');

/** The environment in its contractual order. Only opencode knows model limits, which is settled by the class. */
function environment(
  { runtime, providerKind, providerProxy, network, workspace, resourceClass }: RuntimePoolClassSpec,
  facts: Facts,
): V1EnvVar[] {
  const apiUrl = withoutSlash(network.controller.apiUrl);
  // Without a publisher the variable has the value of the contract, and no policy opens it.
  const artifactUrl = network.artifacts ? withoutSlash(network.artifacts.url) : apiUrl;
  const value = (name: string, text: string): V1EnvVar => ({ name, value: text });
  const fromPod = (name: string, fieldPath: string): V1EnvVar => ({
    name,
    valueFrom: { fieldRef: { apiVersion: 'v1', fieldPath } },
  });
  const limit = (name: string, text: string): V1EnvVar => (providerKind === 'opencode' ? { name, value: text } : { name });
  return [
    value('ORKA_ACP_LISTEN_ADDRESS', `:${controlPort}`),
    fromPod('ORKA_ACP_POD_UID', 'metadata.uid'),
    fromPod('ORKA_ACP_POD_NAME', 'metadata.name'),
    fromPod('ORKA_ACP_POD_NAMESPACE', 'metadata.namespace'),
    value('ORKA_ACP_CONTROLLER_EPOCH', facts.controllerEpoch),
    value('ORKA_ACP_RUNTIME_POOL_UID', facts.poolUid),
    value('ORKA_ACP_RUNTIME_POOL_GENERATION', facts.poolGeneration),
    value('ORKA_ACP_RUNTIME_PROFILE_DIGEST', facts.profileDigest),
    value('ORKA_ACP_PROFILE_DIGEST_SCHEMA_VERSION', facts.profileDigestSchemaVersion),
    value('ORKA_ACP_ACP_PROFILE', 'acp.v1'),
    value('ORKA_ACP_ADAPTER_DIGESTS_JSON', canonicalJson(runtime.adapterDigests)),
    value('ORKA_ACP_PROVIDER', providerKind),
    value('ORKA_ACP_PROVIDER_PROXY_BASE_URL', providerProxy.url.trim()),
    value('ORKA_ACP_MODEL', facts.model),
    limit('ORKA_ACP_MODEL_CONTEXT_LIMIT', facts.modelContextLimit),
    limit('ORKA_ACP_MODEL_OUTPUT_LIMIT', facts.modelOutputLimit),
    value('ORKA_ACP_WORKSPACE_INTENT', facts.workspaceIntent),
    value('ORKA_ACP_AGENT_CONFIGURATION_DIGEST', facts.agentConfigurationDigest),
    value('ORKA_ACP_TOOL_POLICY_DIGEST', facts.toolPolicyDigest),
    value('ORKA_ACP_APPROVAL_POLICY_DIGEST', facts.approvalPolicyDigest),
    value('ORKA_ACP_MCP_CONFIGURATION_DIGEST', facts.mcpConfigurationDigest),
    value('ORKA_ACP_PROXY_CREDENTIAL_ROLE', facts.proxyCredentialRole),
    value('ORKA_ACP_PROXY_CREDENTIAL_SCOPE', facts.proxyCredentialScope),
    value('ORKA_ACP_RESOURCE_CLASS', resourceClass),
    ...(isWorkspaceFacts(facts)
      ? []
      : [
          value('ORKA_ACP_CONTROLLER_TOKEN_FILE', `${authFolder}/controller-token`),
          value('ORKA_ACP_CAPABILITY_SECRET_FILE', `${authFolder}/capability-secret`),
          value('ORKA_ACP_PROVIDER_TOKEN_FILE', `${providerFolder}/token`),
        ]),
    value('ORKA_ACP_PROVIDER_TOKEN_GENERATION', facts.tokenGeneration),
    value('ORKA_ACP_ARTIFACT_API_URL', artifactUrl),
    value('ORKA_ACP_WORKSPACE_MAX_ARTIFACT_BYTES', String(workspace.maxArtifactBytes)),
    value('ORKA_ACP_MCP_BROKER_URL', apiUrl),
    value('ORKA_ACP_TRUST_NAMESPACE', facts.trustNamespace),
    value('ORKA_ACP_SESSION_BASE_DIR', '/sessions'),
    ...(isWorkspaceFacts(facts)
      ? [
          value('ORKA_ACP_CREDENTIAL_BOOTSTRAP_NONCE', facts.bootstrapNonce),
          value('ORKA_ACP_CREDENTIAL_BOOTSTRAP_PUBLIC_KEY', facts.bootstrapPublicKey),
        ]
      : []),
  ];
}
