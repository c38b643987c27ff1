// Whether kube-proxy's rules send traffic to Services on.

/**
 * Judges the table that `nft list table ip kube-proxy` prints.
 *
 * A chain without rules counts only while something leads to it. kube-proxy empties the chains of a deleted Service at once and deletes them
 * with a later sync, minutes afterwards on a quiet cluster.
 *
 * @param {string} ruleset
 * @param {string} apiServer cluster IP of the Service kubernetes
 * @returns {string | undefined} what is wrong
 */
export function serviceProblem(ruleset, apiServer) {
  if (!ruleset.includes('jump services')) return 'no rule jumps to services';
  if (!ruleset.includes(`${apiServer} . tcp . 443`)) return `no rule for the API server, ${apiServer}:443`;
  const used = new Set([...ruleset.matchAll(/\b(?:goto|jump) (\S+?)[,\s]/g)].map(([, name]) => name));
  const empty = [...ruleset.matchAll(/\bchain (\S+) \{\s*\}/g)].map(([, name]) => name).find((name) => used.has(name));
  return empty === undefined ? undefined : `the chain ${empty} is used and has no rules`;
}
