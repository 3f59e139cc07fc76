import { BuildRefused } from "./failures.ts";
import type { SourceTree } from "./source-tree.ts";

/** A Java development kit that builds and runs applications. */
export interface Jdk {
  /** Such as `17.0.15`. */
  readonly version: string;
  readonly folder: string;
  /** Its JAVA_HOME for commands; null if their environment sets it already. */
  readonly home: string | null;
}

interface JdkWish {
  readonly major: number;
  readonly from: string;
  /** Whether only this major version works: Gradle compiles with exactly the toolchain named. */
  readonly isExact: boolean;
}

const places: readonly { readonly file: RegExp; readonly pattern: RegExp; readonly isExact?: boolean }[] = [
  { file: /^system\.properties$/, pattern: /^[ \t]*java\.runtime\.version[ \t]*=[ \t]*(?:[a-z]+-)?(\d+)/m },
  { file: /^\.java-version$/, pattern: /^(?:[a-z]+-)?(1\.8|\d+)/ },
  {
    file: /^pom\.xml$/,
    pattern:
      /<(?:java\.version|maven\.compiler\.release|maven\.compiler\.target|maven\.compiler\.source|release)>\s*(1\.8|\d+)/,
  },
  { file: /\.gradle(?:\.kts)?$/, pattern: /(?:JavaLanguageVersion\.of|jvmToolchain)\(\s*["']?(\d+)/, isExact: true },
  {
    file: /\.gradle(?:\.kts)?$/,
    pattern: /(?:source|target)Compatibility\s*=\s*(?:JavaVersion\.VERSION_|["'])?(1[._]8|\d+)/,
  },
];

/** Returns the Java version that the source asks for; null if it names none. */
export function jdkWish(tree: SourceTree): JdkWish | null {
  for (const { file, pattern, isExact = false } of places) {
    for (const path of tree.paths.filter((each) => file.test(each))) {
      const [, written] = pattern.exec(tree.text(path) ?? "") ?? [];
      if (written !== undefined) return { major: Number(written.replace(/^1[._]/, "")), from: path, isExact };
    }
  }
  return null;
}

/** Returns the machine's JDK of the requested major version, else the next newer one; without a request, the first. Throws BuildRefused. */
export function chooseJdk(jdks: readonly Jdk[], wish: JdkWish | null): Jdk {
  const [first] = jdks;
  if (first === undefined) throw new BuildRefused("java_missing");
  if (wish === null) return first;
  const fitting = jdks.filter((jdk) => (wish.isExact ? majorOf(jdk) === wish.major : majorOf(jdk) >= wish.major));
  const [chosen] = fitting.toSorted((a, b) => majorOf(a) - majorOf(b));
  if (chosen !== undefined) return chosen;
  const has = jdks.map(({ version }) => version).join(" and ");
  throw new BuildRefused("java_version_unavailable", {
    stage: "detect",
    summary: `${wish.from} requires Java ${wish.major}; this machine has ${has}.`,
  });
}

const majorOf = ({ version }: Jdk): number => Number(version.replace(/^1\./, "").split(/[.+-]/)[0]);
