import { mostTokens } from '../../api/index.js';
import type { TokenUsage } from '../../api/index.js';
import type { Usage } from '../../harness/events.js';

/** Tokens that an agent reported for its prompt, each from 0 to {@link mostTokens}; `undefined` = it reported none that can be shown. */
export function tokensOf({ inputTokens, outputTokens, cachedInputTokens }: Usage = {}): TokenUsage | undefined {
  const counts = Object.entries({ inputTokens, outputTokens, cachedInputTokens }).filter(
    ([, count]) => count !== undefined && Number.isSafeInteger(count) && count >= 0 && count <= mostTokens,
  );
  return counts.length > 0 ? Object.fromEntries(counts) : undefined;
}
