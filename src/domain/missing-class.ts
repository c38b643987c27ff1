import { selectableResourceClass } from './plan.js';

/** What names a class, and what it is for. */
export interface ClassName {
  readonly name: string;
  readonly providerKind: string;
  readonly resourceClass: string;
}

const mostNames = 10;

/** That no class is for a runtime, and which classes there are. @param known absent: nothing is known of the others */
export function missingClass(runtime: string, known?: readonly ClassName[]): string {
  const missing = `there is no RuntimePoolClass for ${runtime}/${selectableResourceClass}`;
  if (known === undefined) return missing;
  if (known.length === 0) return `${missing}, and no other class either`;
  const names = known.map(({ name, providerKind, resourceClass }) => `${name} (${providerKind}/${resourceClass})`).sort();
  const more = names.length > mostNames ? ` and ${names.length - mostNames} more` : '';
  return `${missing}; classes that exist: ${names.slice(0, mostNames).join(', ')}${more}`;
}

/** Who has to do what about it. */
export const missingClassRemedy =
  'the operator of the platform adds the class under classes in platform.yaml and applies it, or the Agent names another runtime in spec.runtime.type';
