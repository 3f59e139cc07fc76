import { FolderUp, LoaderCircle } from "lucide-react";
import { useEffect, useRef, useState, type ChangeEvent, type DragEvent } from "react";
import { chosenFolder, droppedFolder, type LocalFolder } from "../data/folder.ts";
import { loadPart } from "../data/load-part.ts";
import type { PackedFolder } from "../data/packed-folder.ts";
import { Button } from "./button.tsx";
import { Problem } from "./page.tsx";

interface FolderDropProps {
  /** Shows the plan of the folder. What it throws is shown here. */
  readonly onPacked: (folder: PackedFolder) => unknown;
  readonly why?: string | undefined;
}

export function FolderDrop({ onPacked, why }: FolderDropProps) {
  const [step, setStep] = useState<string>();
  const [error, setError] = useState<Error | null>(null);
  const [over, setOver] = useState(false);
  const input = useRef<HTMLInputElement>(null);
  const isOff = step !== undefined || why !== undefined;
  useEffect(refuseStrayDrops, []);
  const pack = async (folder: LocalFolder | undefined) => {
    setError(null);
    setStep(`Reading ${folder?.name ?? "the folder"}`);
    try {
      const { packFolder } = await loadPart(() => import("../data/packed-folder.ts"));
      await onPacked(await packFolder(folder));
    } catch (fault) {
      setError(fault as Error);
    }
    setStep(undefined);
  };
  const onDrop = (event: DragEvent) => {
    event.preventDefault();
    setOver(false);
    if (!isOff) void pack(droppedFolder(event.dataTransfer.items));
  };
  const onChosen = ({ target }: ChangeEvent<HTMLInputElement>) => {
    if (target.files !== null) void pack(chosenFolder(target.files));
    // The browser reports no change when the user chooses the same folder again, for example after fixing a mistake in it.
    target.value = "";
  };
  return (
    <div className="flex flex-col gap-3">
      <div
        onDragOver={(event) => (event.preventDefault(), setOver(!isOff))}
        onDragLeave={({ currentTarget, relatedTarget }) =>
          setOver(currentTarget.contains(relatedTarget as Node | null))
        }
        onDrop={onDrop}
        className={`flex flex-wrap items-center gap-x-4 gap-y-3 rounded-md border border-dashed px-5 py-4 text-left transition-colors ${over ? "border-accent bg-accent/8" : "border-strong/60"}`}
      >
        {step === undefined ? (
          <FolderUp aria-hidden size={20} className="shrink-0 text-faint" />
        ) : (
          <LoaderCircle aria-hidden size={20} className="shrink-0 animate-spin text-busy" />
        )}
        <div role="status" className="min-w-48 flex-1 text-sm">
          <p className="font-medium">
            {step ?? (
              <>
                <span className="max-sm:hidden pointer-coarse:hidden">Drop a folder here to deploy it</span>
                <span className="hidden max-sm:inline pointer-coarse:inline">Deploy a folder of this device</span>
              </>
            )}
          </p>
          <p className="text-faint">You see the plan first. Files that .gitignore or .berthignore name stay here.</p>
        </div>
        <input
          ref={input}
          type="file"
          aria-label="Folder to deploy"
          className="hidden"
          {...{ webkitdirectory: "" }}
          onChange={onChosen}
        />
        <Button busy={step !== undefined} why={why} onClick={() => input.current?.click()}>
          Choose a folder
        </Button>
      </div>
      {error !== null && <Problem error={error} />}
    </div>
  );
}

/** Stops the browser from leaving the page for files that are dropped beside the zone. Returns how to end that. */
function refuseStrayDrops(): () => void {
  const stop = new AbortController();
  const refuse = (event: globalThis.DragEvent) => {
    if (event.defaultPrevented || event.dataTransfer?.types.includes("Files") !== true) return;
    event.preventDefault();
    event.dataTransfer.dropEffect = "none";
  };
  addEventListener("dragover", refuse, stop);
  addEventListener("drop", refuse, stop);
  return () => stop.abort();
}
