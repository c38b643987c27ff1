import { Option } from 'commander';
import { settingNames, settings } from '../domain/settings.js';
import type { Setting, SettingName } from '../domain/settings.js';

/** The flags of `controller`, one for each setting. */
export function controllerOptions(): readonly Option[] {
  return settingNames.map(optionOf);
}

function optionOf(name: SettingName): Option {
  const { flag, argument, variable, schema, flagDefault }: Setting = settings[name];
  const isList = schema['type'] === 'array';
  const note = isList ? ' Repeatable; the variable takes a list with commas.' : '';
  const option = new Option(`${flag} ${argument}`, `${String(schema.description)}${note}`);
  if (variable !== undefined) option.env(variable);
  if (isList)
    option.argParser((value: string, values: readonly string[] | undefined): readonly string[] => [...(values ?? []), value]);
  const value = flagDefault ?? (schema as { readonly default?: string | number | boolean }).default;
  return value === undefined || isList ? option : option.default(String(value));
}
