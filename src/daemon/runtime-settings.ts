import { choice, list, optionalText, text } from "./settings.ts";

/** What builds and runs applications. */
export const runtimeSettings = {
  runtime: choice(
    "BERTH_RUNTIME",
    ["process", "docker", "process,docker", "docker,process"],
    "What builds and runs applications: sandboxed processes, containers of a Docker engine on this machine, or both; projects begin in the first, and `berth platform runtime` moves them.",
  ),
  dockerSocket: text("BERTH_DOCKER_SOCKET", "/var/run/docker.sock", "The unix socket of the Docker engine."),
  dockerRuntime: optionalText(
    "BERTH_DOCKER_RUNTIME",
    "The Docker engine's runtime of applications, such as `runsc` for gVisor; the engine's default when unset.",
  ),
  nodeImage: text(
    "BERTH_NODE_IMAGE",
    "node:24-bookworm-slim",
    "Parent image of applications in Node.js and of static sites.",
  ),
  pythonImage: text("BERTH_PYTHON_IMAGE", "python:3.13-slim-bookworm", "Parent image of applications in Python."),
  goImage: text("BERTH_GO_IMAGE", "golang:1.25-bookworm", "Parent image of builds of Go."),
  rustImage: text("BERTH_RUST_IMAGE", "rust:1-slim-bookworm", "Parent image of builds of Rust."),
  javaImage: text(
    "BERTH_JAVA_IMAGE",
    "maven:3-eclipse-temurin-21",
    "Parent image of applications in Java; it brings Maven.",
  ),
  rubyImage: text("BERTH_RUBY_IMAGE", "ruby:3.4-bookworm", "Parent image of applications in Ruby; it brings Bundler."),
  phpImage: text("BERTH_PHP_IMAGE", "composer:2", "Parent image of applications in PHP; it brings Composer."),
  plainImage: text(
    "BERTH_PLAIN_IMAGE",
    "debian:bookworm-slim",
    "Parent image of applications that are one static binary.",
  ),
  sharedImages: list(
    "BERTH_SHARED_IMAGES",
    (value) => (/^[\w./:@-]+$/.test(value) ? undefined : "is not the name of an image"),
    "Images of the engine that Dockerfiles may start from, beside those parent images; all others come from registries.",
  ),
  privateRegistries: list(
    "BERTH_PRIVATE_REGISTRIES",
    (value) => (/^[a-z0-9][a-z0-9.-]*(?::\d{1,5})?$/.test(value) ? undefined : "is not a host, or a host with a port"),
    "Registries of images in private networks or on this machine that builds may reach, as host:port; 443 without a port.",
  ),
};
