import { isIP } from "node:net";
import { officialImages, type ParentName } from "./parent-images.ts";
import { choices, list, optionalText, text, wholeNumber } from "./settings.ts";

const parentImage = (variable: `BERTH_${string}`, language: ParentName, use: string) =>
  optionalText(variable, `Parent image of ${use}. Default: BERTH_BASE_IMAGE, else \`${officialImages[language]}\`.`);

/** Settings of what builds and runs applications. */
export const runtimeSettings = {
  runtimes: choices(
    "BERTH_RUNTIME",
    ["process", "docker", "swarm"],
    "What builds and runs applications: sandboxed processes, containers of a Docker engine on this machine, or the machines of a Docker Swarm. Several with commas, such as `process,swarm`: projects start in the first, and `berth platform runtime` moves them.",
  ),
  dockerSocket: text("BERTH_DOCKER_SOCKET", "/var/run/docker.sock", "The unix socket of the Docker engine."),
  dockerRuntime: optionalText(
    "BERTH_DOCKER_RUNTIME",
    "The Docker engine's OCI runtime for applications, such as `runsc` for gVisor; the engine's default when unset. Not with a swarm.",
  ),
  swarmRegistry: optionalText(
    "BERTH_SWARM_REGISTRY",
    "The registry from which a swarm's machines pull images, such as `registry.example.com:5000/berth`; when unset, Berth runs one.",
  ),
  swarmRegistryLogin: optionalText("BERTH_SWARM_REGISTRY_LOGIN", "`user:password` for BERTH_SWARM_REGISTRY."),
  swarmRegistryPort: wholeNumber(
    "BERTH_SWARM_REGISTRY_PORT",
    5443,
    [1024, 65_535],
    "The port of the registry that Berth runs, at the address of this machine in its swarm.",
  ),
  swarmEdges: list(
    "BERTH_SWARM_EDGES",
    (value) => (isIP(value) === 4 ? undefined : "is not an IPv4 address"),
    "Addresses of edges on machines outside the swarm; replicas accept connections only from them and from the swarm's own machines.",
  ),
  swarmManagers: list(
    "BERTH_SWARM_MANAGERS",
    (value) => (/^[a-z0-9][a-z0-9.-]*:\d{1,5}$/.test(value) ? undefined : "is not a host with a port"),
    "Engines of other managers of the swarm, as host:port, that Berth calls while its own manager does not answer; needs BERTH_SWARM_CERTIFICATES.",
  ),
  swarmCertificates: optionalText(
    "BERTH_SWARM_CERTIFICATES",
    "Folder with `ca.pem`, `cert.pem` and `key.pem`, by which Berth and the engines of BERTH_SWARM_MANAGERS authenticate each other.",
  ),
  baseImage: optionalText(
    "BERTH_BASE_IMAGE",
    "Parent image of all generated Dockerfiles, with the tools of every language in use; the settings for single languages below override it.",
  ),
  nodeImage: parentImage("BERTH_NODE_IMAGE", "node", "applications in Node.js and of static sites"),
  pythonImage: parentImage("BERTH_PYTHON_IMAGE", "python", "applications in Python"),
  goImage: parentImage("BERTH_GO_IMAGE", "go", "builds of Go"),
  rustImage: parentImage("BERTH_RUST_IMAGE", "rust", "builds of Rust"),
  javaImage: parentImage("BERTH_JAVA_IMAGE", "java", "applications in Java; includes Maven"),
  rubyImage: parentImage("BERTH_RUBY_IMAGE", "ruby", "applications in Ruby; includes Bundler"),
  phpImage: parentImage("BERTH_PHP_IMAGE", "php", "applications in PHP; includes Composer"),
  plainImage: parentImage("BERTH_PLAIN_IMAGE", "plain", "applications that are one static binary"),
  sharedImages: list(
    "BERTH_SHARED_IMAGES",
    (value) => (/^[\w./:@-]+$/.test(value) ? undefined : "is not a valid image name"),
    "Images of the engine that Dockerfiles may start from, besides those parent images; all others come from registries.",
  ),
  privateRegistries: list(
    "BERTH_PRIVATE_REGISTRIES",
    (value) => (/^[a-z0-9][a-z0-9.-]*(?::\d{1,5})?$/.test(value) ? undefined : "is not a host, or a host with a port"),
    "Registries of images in private networks or on this machine that builds may reach, as host:port; 443 without a port.",
  ),
};
