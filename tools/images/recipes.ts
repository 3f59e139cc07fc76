export interface Recipe {
  /** mmdebstrap's variant: `extract` unpacks packages without running their scripts; `minbase` is a Debian in which apt works. */
  readonly variant: "extract" | "minbase";
  readonly packages: readonly string[];
  /** Whether to add the Node.js that runs this script, and npm, to /usr/local. */
  readonly node: boolean;
  /** Whether its Java trusts this machine's certificates. */
  readonly java?: true;
  /** Lines of a Dockerfile that describe the image: `ENV`, `WORKDIR`, `CMD`. */
  readonly changes: readonly string[];
}

const bundle = "/etc/ssl/certs/ca-certificates.crt";

// Variables that a machine needs in each build if its registries have a private certificate; elsewhere their values are the defaults.
const certificates = ["SSL_CERT_FILE", "NODE_EXTRA_CA_CERTS", "PIP_CERT", "REQUESTS_CA_BUNDLE", "CARGO_HTTP_CAINFO"];

const changes = [
  "ENV PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
  ...certificates.map((name) => `ENV ${name}=${bundle}`),
];

const small = ["libc6", "libstdc++6", "libgcc-s1", "busybox-static", "tini", "base-files", "netbase", "tzdata"];

/** The images that the tests use, by name. */
export const recipes: Readonly<Record<string, Recipe>> = {
  /** The smallest; busybox is its shell. */
  debian: { variant: "extract", packages: small, node: false, changes: [...changes, 'CMD ["sh"]'] },
  node: { variant: "extract", packages: small, node: true, changes: [...changes, 'CMD ["node"]'] },
  python: {
    variant: "extract",
    packages: [...small, "python3", "python3-venv", "python3-pip"],
    node: false,
    // Dockerfiles install into the image's own Python, as they do in the official image.
    changes: [...changes, "ENV PIP_BREAK_SYSTEM_PACKAGES=1", 'CMD ["python3"]'],
  },
  golang: {
    variant: "extract",
    packages: [...small, "golang-go", "git"],
    node: false,
    changes: [...changes, "ENV GOPATH=/go", 'CMD ["sh"]'],
  },
  rust: withApt(["rustc-web", "cargo-web", "gcc", "libc6-dev", "pkg-config"]),
  java: { ...withApt(["openjdk-17-jdk-headless", "maven", "curl"]), java: true },
  ruby: withApt(["ruby", "ruby-dev", "ruby-bundler", "puma", "gcc", "make", "libc6-dev"]),
  php: withApt(["php-cli", "composer"]),
  /** A Debian with apt, for Dockerfiles that install packages. */
  bookworm: withApt([]),
};

function withApt(packages: readonly string[]): Recipe {
  const all = ["ca-certificates", ...packages];
  return { variant: "minbase", packages: all, node: false, changes: [...changes, 'CMD ["bash"]'] };
}
