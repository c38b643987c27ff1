import type { Chart } from 'cdk8s';
import { SandboxClaim, SandboxTemplate, SandboxWarmPool } from 'orka-workspaces';
import { confined, dnsAndHttps, fromSecret, resources, router } from './shared.js';

const healthy = (initialDelaySeconds: number, periodSeconds: number) => ({
  httpGet: { path: '/healthz', port: 8080 },
  initialDelaySeconds,
  periodSeconds,
});

/** A virtual machine for each agent, on AKS; claims may add variables, not change those of the template. */
export function kata(chart: Chart): void {
  const template = new SandboxTemplate(chart, 'template', {
    metadata: { name: 'machine' },
    envVarsInjectionPolicy: 'Allowed',
    service: true,
    networkPolicy: {
      ingress: [{ from: [router], ports: [{ protocol: 'TCP', port: 8080 }] }],
      egress: dnsAndHttps,
    },
    allow: ['network-policy/open-rule'],
    podTemplate: {
      spec: {
        runtimeClassName: 'kata-vm-isolation',
        nodeSelector: { 'kubernetes.azure.com/kata-vm-isolation': 'true' },
        tolerations: [{ key: 'kata', operator: 'Equal', value: 'enabled', effect: 'NoSchedule' }],
        restartPolicy: 'OnFailure',
        containers: [
          {
            name: 'agent',
            image: 'registry.example/agent:1.0.0',
            imagePullPolicy: 'Always',
            securityContext: {
              ...confined,
              runAsNonRoot: true,
              runAsUser: 1000,
              runAsGroup: 1000,
              seccompProfile: { type: 'RuntimeDefault' },
            },
            env: ['OPENAI_BASE_URL', 'OPENAI_API_KEY', 'LLM_MODEL'].map((name) => fromSecret(name, 'azure-foundry', name)),
            ports: [{ containerPort: 8080, name: 'http', protocol: 'TCP' }],
            readinessProbe: healthy(3, 5),
            livenessProbe: healthy(10, 10),
            resources: resources(['250m', '512Mi'], ['1', '1Gi']),
          },
        ],
      },
    },
  });
  const warmPool = new SandboxWarmPool(chart, 'pool', {
    metadata: { name: 'machines' },
    template,
    replicas: 3,
    updateStrategy: 'OnReplenish',
  });
  new SandboxClaim(chart, 'claim', { metadata: { name: 'machine-of-ada' }, warmPool });
}
