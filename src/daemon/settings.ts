/** A setting: its environment variable, its default and its meaning. */
export interface Setting<T> {
  readonly name: `BERTH_${string}`;
  /** The default, as the documentation shows it. */
  readonly standard: string;
  readonly meaning: string;
  /** Parses the variable's text, which is undefined if it is not set. Throws a sentence about what is wrong. */
  readonly read: (text: string | undefined) => T;
}

export function text(name: Setting<string>["name"], standard: string, meaning: string): Setting<string> {
  return { name, standard, meaning, read: (given) => given ?? standard };
}

export function optionalText(name: Setting<string>["name"], meaning: string): Setting<string | null> {
  return { name, standard: "", meaning, read: (given) => given ?? null };
}

/** A setting of several values, separated by commas. `fault` returns what is wrong with one of them, or undefined. */
export function list(
  name: Setting<readonly string[]>["name"],
  fault: (value: string) => string | undefined,
  meaning: string,
): Setting<readonly string[]> {
  const read = (given: string | undefined) => {
    const values = (given ?? "")
      .split(",")
      .map((value) => value.trim())
      .filter((value) => value !== "");
    for (const value of values) {
      const wrong = fault(value);
      if (wrong !== undefined) throw new Error(`${name}: ${value} ${wrong}.`);
    }
    return values;
  };
  return { name, standard: "", meaning, read };
}

export function wholeNumber(
  name: Setting<number>["name"],
  standard: number,
  range: readonly [number, number],
  meaning: string,
): Setting<number> {
  const read = (given: string | undefined) => {
    const value = given === undefined ? standard : Number(given);
    if (!Number.isInteger(value) || value < range[0] || value > range[1]) {
      throw new Error(`${name} must be a whole number from ${range[0]} to ${range[1]}, not "${given}".`);
    }
    return value;
  };
  return { name, standard: String(standard), meaning, read };
}

export function flag(name: Setting<boolean>["name"], standard: boolean, meaning: string): Setting<boolean> {
  const read = (given: string | undefined) => {
    if (given === undefined) return standard;
    if (["1", "true", "yes", "on"].includes(given.toLowerCase())) return true;
    if (["0", "false", "no", "off"].includes(given.toLowerCase())) return false;
    throw new Error(`${name} must be 1 or 0, not "${given}".`);
  };
  return { name, standard: standard ? "1" : "0", meaning, read };
}

export function choice<const T extends string>(
  name: Setting<T>["name"],
  choices: readonly [T, ...T[]],
  meaning: string,
): Setting<T> {
  const read = (given: string | undefined) => {
    const value = given ?? choices[0];
    const found = choices.find((each) => each === value);
    if (found === undefined) throw new Error(`${name} must be ${choices.join(" or ")}, not "${given}".`);
    return found;
  };
  return { name, standard: choices[0], meaning, read };
}

/** A setting of one or several of these values, in any order, separated by commas; the first of them if it is not set. */
export function choices<const T extends string>(
  name: Setting<T>["name"],
  possible: readonly [T, ...T[]],
  meaning: string,
): Setting<readonly [T, ...T[]]> {
  const read = (given: string | undefined): readonly [T, ...T[]] => {
    const words = (given ?? possible[0]).split(",").map((word) => word.trim());
    const [first, ...others] = words.flatMap((word) => possible.filter((each) => each === word));
    if (first === undefined || others.length + 1 < words.length || new Set(words).size < words.length)
      throw new Error(`${name} must be ${possible.join(" or ")}, or several of them with commas, not "${given}".`);
    return [first, ...others];
  };
  return { name, standard: possible[0], meaning, read };
}
