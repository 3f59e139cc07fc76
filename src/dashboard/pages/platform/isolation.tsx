import { capitalized } from "../../data/format.ts";

/** Lists in words how applications are kept apart. */
export function Isolation({ of }: { readonly of: readonly string[] }) {
  return (
    <ul className="flex list-disc flex-col gap-x-8 gap-y-0.5 pl-4 text-sm sm:block sm:columns-2">
      {of.map((part) => (
        <li key={part}>{words[part] ?? capitalized(part)}</li>
      ))}
    </ul>
  );
}

const words: Readonly<Record<string, string>> = {
  namespaces: "Each application sees only its own processes and files",
  seccomp: "Dangerous system calls are refused",
  project_user: "Each project has a system user of its own",
  no_capabilities: "No process has the rights of root",
  no_new_privileges: "No process can get more rights than it was started with",
  read_only_root: "The files of an image cannot be changed",
  user_namespace: "Root in a container is nobody on the machine",
  private_app_folder: "Each application writes to a folder of its own",
  memory_limit: "Memory has a limit",
  process_limit: "The number of processes has a limit",
  cpu_limit: "Processor time has a limit",
  network_namespace: "Each application has a network of its own",
  metadata_closed: "The cloud's metadata service cannot be reached",
  private_networks_closed: "Hosts of private networks cannot be reached",
  live_restore: "Applications go on while the engine restarts",
};
