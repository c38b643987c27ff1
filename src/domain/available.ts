import type { Hosting } from './admission/rule.js';

/** What this version runs. The rules of everything else are complete; it is refused by name. */
export const available: Hosting['available'] = { substrate: false, sessionReuse: false, plainPools: true };
