import { describe, expect, test } from '@jest/globals';
import { keptText } from './cluster/kept.js';
import { serviceProblem } from './cluster/service-rules.js';
import { poolClass } from './support/objects.js';

describe('kube-proxy', () => {
  /** As `nft list table ip kube-proxy` prints it, shortened. */
  const ruleset = (more = '', endpoint = 'meta l4proto tcp dnat to 198.18.0.1:6443') => `table ip kube-proxy {
	map no-endpoint-services {
		type ipv4_addr . inet_proto . inet_service : verdict
	}
	map service-ips {
		type ipv4_addr . inet_proto . inet_service : verdict
		elements = { 10.96.0.10 . tcp . 53 : goto service-NW-kube-system/kube-dns/tcp/dns-tcp,
			     10.96.0.1 . tcp . 443 : goto service-2Q-default/kubernetes/tcp/https }
	}
	chain nat-output {
		type nat hook output priority -100; policy accept;
		jump services
	}
	chain endpoint-X2-default/kubernetes/tcp/https__198.18.0.1/6443 {
		${endpoint}
	}
	chain service-NW-kube-system/kube-dns/tcp/dns-tcp {
		numgen random mod 1 vmap { 0 : goto endpoint-X2-default/kubernetes/tcp/https__198.18.0.1/6443 }
	}
	chain service-2Q-default/kubernetes/tcp/https {
		numgen random mod 1 vmap { 0 : goto endpoint-X2-default/kubernetes/tcp/https__198.18.0.1/6443 }
	}
${more}}
`;

  test('is healthy while it sends traffic on', () => {
    expect(serviceProblem(ruleset(), '10.96.0.1')).toBeUndefined();
  });

  test('is healthy while the emptied chains of a deleted Service wait for their end', () => {
    const stale = '	chain endpoint-ZZ-team-a/web/tcp/http__10.244.0.9/8080 {\n	}\n	chain service-ZY-team-a/web/tcp/http {\n	}\n';
    expect(serviceProblem(ruleset(stale), '10.96.0.1')).toBeUndefined();
  });

  test.each([
    ['it has no rules', '', /no rule jumps to services/],
    ['the API server has no rule', ruleset().replace('10.96.0.1 .', '10.96.0.9 .'), /no rule for the API server, 10.96.0.1:443/],
    ['an endpoint that is in use lost its rules', ruleset('', ''), /chain endpoint-X2\S+ is used and has no rules/],
    [
      'a Service that is in use lost its rules',
      ruleset().replace(/(chain service-NW\S+ \{)[^]*?\n\t\}/, '$1\n\t}'),
      /chain service-NW\S+ is used and has no rules/,
    ],
  ])('is not when %s', (_, text, problem) => {
    expect(serviceProblem(text, '10.96.0.1')).toMatch(problem);
  });
});

test('a demo that keeps its installation names its files and every command that removes it, in order', () => {
  const text = keptText(
    { kubeconfig: '/c/admin.kubeconfig', kubectl: '/c/bin/kubectl', example: 'examples/smoke.yaml' },
    {
      dist: '/tmp/kept/dist',
      namespaces: { controller: 'orka-system', runtime: 'orka-runtimes', tasks: 'demo-magic' },
      poolClass: poolClass(),
    },
  );
  expect(text).toBe(`The controller and the model stay. Their settings:
  /tmp/kept/platform.yaml   rendered into /tmp/kept/dist
A Task of your own:
  export KUBECONFIG=/c/admin.kubeconfig
  /c/bin/kubectl apply -f examples/smoke.yaml
To change a setting, edit that platform.yaml, then:
  node lib/bin/orka-workspaces.js synth --platform /tmp/kept/platform.yaml --out /tmp/kept/dist
  /c/bin/kubectl apply --server-side -k /tmp/kept/dist
To remove everything, in this order:
  /c/bin/kubectl delete tasks,runtimepools --all -n demo-magic
  /c/bin/kubectl delete --ignore-not-found -f /tmp/kept/dist/apply/0002-classes.k8s.yaml -f /tmp/kept/dist/apply/0001-install.k8s.yaml
  /c/bin/kubectl delete -f /tmp/kept/dist/apply/0000-crds.k8s.yaml
  /c/bin/kubectl delete --ignore-not-found -n vekil-system pod/model service/vekil configmap/model secret/model
  /c/bin/kubectl delete namespace demo-magic vekil-system
  rm -r /tmp/kept
Or take the whole cluster away: npm run cluster:down`);
});
