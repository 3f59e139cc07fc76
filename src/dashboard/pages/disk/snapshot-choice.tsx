import { useNavigate } from "@tanstack/react-router";
import { useCall, useWhyNot } from "../../data/api.ts";
import { exact } from "../../data/format.ts";
import { Select } from "../../ui/field.tsx";

export interface StorageSearch {
  /** A folder below the storage folder. */
  readonly path?: string;
  /** The backup whose files are shown, instead of the live ones. */
  readonly backup?: string;
}

/** Chooses whether the page shows the live files or those of a backup. */
export function SnapshotChoice({ slug, path, backup }: StorageSearch & { readonly slug: string }) {
  const navigate = useNavigate();
  const enabled = useWhyNot("backups.list") === undefined;
  const { data } = useCall("backups.list", { params: { slug } }, { enabled });
  const kept = data?.backups.filter(({ content, status }) => content === "files" && status === "completed") ?? [];
  // An older one than the list has, or one that is still to come.
  const isListed = backup === undefined || kept.some(({ id }) => id === backup);
  const choose = (id: string) =>
    void navigate({
      to: "/projects/$slug/storage",
      params: { slug },
      search: {
        ...(path === undefined || path.split("/")[0] === ".restored" ? {} : { path }),
        ...(id === "" ? {} : { backup: id }),
      },
    });
  return (
    <Select
      aria-label="Files as of"
      value={backup ?? ""}
      disabled={!enabled}
      className="!w-auto max-w-80"
      onChange={({ target }) => choose(target.value)}
    >
      <option value="">Now</option>
      {!isListed && <option value={backup}>Snapshot {backup}</option>}
      {kept.map(({ id, created_at: at, origin }) => (
        <option key={id} value={id}>
          Snapshot of {exact(at)} ({origin})
        </option>
      ))}
    </Select>
  );
}
