import type { Chart } from 'cdk8s';
import { Sandbox } from 'orka-workspaces';
import { disk, fromSecret } from './shared.js';

const image = 'jupyterhub/k8s-singleuser-sample:4.2.0';
const home = '/home/jovyan';
const workspace = { name: 'workspace', mountPath: home };
const securityContext = { runAsUser: 1000, runAsGroup: 100, allowPrivilegeEscalation: false };
const token = fromSecret('HF_TOKEN', 'jupyter-hf-token', 'token');
const cache = { name: 'HF_HOME', value: `${home}/.cache/huggingface` };

/** A notebook that installs its packages and models on its own disk once, before it starts for the first time. */
export function jupyterlab(chart: Chart): void {
  new Sandbox(chart, 'sandbox', {
    metadata: { name: 'notebook' },
    volumeClaimTemplates: [disk('workspace', '20Gi')],
    podTemplate: {
      metadata: { labels: { app: 'jupyterlab', sandbox: 'jupyterlab' } },
      spec: {
        securityContext: { fsGroup: 100 },
        initContainers: [
          {
            name: 'setup-environment',
            image,
            command: [
              '/bin/bash',
              '-ec',
              'test -e ~/.done || { pip install --user -r /config/requirements.txt; python /config/download_models.py "$HF_HOME"; touch ~/.done; }',
            ],
            env: [
              token,
              cache,
              { name: 'PIP_CACHE_DIR', value: `${home}/.pip-cache` },
              ...['TMPDIR', 'TEMP', 'TMP'].map((name) => ({ name, value: `${home}/.tmp` })),
            ],
            volumeMounts: [workspace, { name: 'init-files', mountPath: '/config', readOnly: true }],
            resources: {
              requests: { cpu: '500m', memory: '2Gi', 'ephemeral-storage': '10Gi' },
              limits: { cpu: '2', memory: '4Gi', 'ephemeral-storage': '10Gi' },
            },
            securityContext,
          },
        ],
        containers: [
          {
            name: 'jupyterlab',
            image,
            command: ['/bin/bash', '-c'],
            args: [`exec jupyter lab --ip=0.0.0.0 --port=8888 --notebook-dir=${home}/work`],
            env: [token, { name: 'JUPYTER_ENABLE_LAB', value: 'yes' }, cache],
            ports: [{ containerPort: 8888, name: 'notebook', protocol: 'TCP' }],
            volumeMounts: [workspace],
            resources: {
              requests: { cpu: '1', memory: '2Gi', 'ephemeral-storage': '1Gi' },
              limits: { cpu: '4', memory: '8Gi', 'ephemeral-storage': '2Gi' },
            },
            securityContext,
          },
        ],
        volumes: [{ name: 'init-files', configMap: { name: 'jupyter-init-files' } }],
      },
    },
  });
}
