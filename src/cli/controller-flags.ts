import type { Command } from 'commander';
import { readSettings } from '../controller/settings.js';
import type { ControllerSettings, Written, WrittenSettings } from '../controller/settings.js';
import { settingNames, settings } from '../domain/settings.js';

/** Reads the settings of a controller from its flags and their variables. Throws `SettingsError`. */
export function settingsFrom(command: Command, version: string): ControllerSettings {
  const written = Object.fromEntries(settingNames.map((name) => [name, textsFrom(command, settings[name].flag)]));
  return readSettings(written as WrittenSettings, version);
}

/** What a flag was given, or else its variable, or else its default. A variable of a repeatable flag is a list with commas. */
function textsFrom(command: Command, flag: string): readonly Written[] {
  const option = command.options.find(({ long }) => long === flag);
  if (!option) throw new Error(`the command has no ${flag}`);
  const value: unknown = command.getOptionValue(option.attributeName());
  const given = textsOf(value);
  if (option.envVar === undefined || command.getOptionValueSource(option.attributeName()) !== 'env')
    return given.map((text) => ({ from: flag, text }));
  const { envVar } = option;
  const set = (Array.isArray(value) ? given.flatMap((text) => text.split(',')) : given)
    .map((text) => text.trim())
    .filter((text) => text !== '');
  if (set.length > 0) return set.map((text) => ({ from: envVar, text }));
  return textsOf(option.defaultValue).map((text) => ({ from: flag, text }));
}

const textsOf = (value: unknown): readonly string[] => (value === undefined ? [] : [value].flat().map(String));
