import { annotationKeys } from '../../domain/labels.js';

/** What a Task says while its namespace has as many as it may. */
export function waitsForPlace(namespace: string, limit: number): string {
  return `namespace ${namespace} has as many Tasks under way as it may have at once (${limit}); this one waits until one of them is over`;
}

/** What a Task says while new Tasks are paused. */
export function waitsForResume(namespace: string, by: 'platform' | 'namespace'): string {
  const who =
    by === 'platform' ? 'the platform (controller.paused)' : `namespace ${namespace} (annotation ${annotationKeys.paused})`;
  return `new Tasks are paused by ${who}; this one waits until they are resumed`;
}
