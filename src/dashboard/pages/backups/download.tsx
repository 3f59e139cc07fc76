import { Download as Icon } from "lucide-react";
import { useState } from "react";
import type { Answer, Client } from "../../../contract/client.ts";
import { call, useClient } from "../../data/api.ts";
import { bytes } from "../../data/format.ts";
import { useOneCall } from "../../data/use-one-call.ts";
import { saveFile } from "../../data/save-file.ts";
import { Button, Command } from "../../ui/button.tsx";
import { Choice } from "../../ui/choice.tsx";
import { Section, Problem } from "../../ui/page.tsx";

const formats = ["custom", "plain"] as const;
const words = { custom: "For pg_restore", plain: "SQL text" };
const endings = { custom: "dump", plain: "sql" };
const seals = ["plain", "age"] as const;
const sealWords = { plain: "Plain", age: "Encrypted (age)" };

interface DownloadProps {
  readonly slug: string;
  readonly backup: Answer<"backups.get">;
}

/** Downloads the backup as a file. The platform checks it against its checksum on the way. */
export function Download({ slug, backup }: DownloadProps) {
  const client = useClient();
  const isFiles = backup.content === "files";
  const [format, setFormat] = useState<(typeof formats)[number]>("custom");
  const [seal, setSeal] = useState<(typeof seals)[number]>("plain");
  const [received, setReceived] = useState<number>();
  const { isBusy, error, run } = useOneCall();
  const receive = async () => {
    setReceived(0);
    const body = { format, backup_id: backup.id, encrypted: seal === "age" };
    const { id } = await call(client, "database.dump", { params: { slug }, body });
    const file = await receiveFile(client, { slug, id, onBytes: setReceived });
    const ending = `${isFiles ? "tar" : endings[format]}${seal === "age" ? ".age" : ""}`;
    saveFile(`${slug}-${backup.created_at.slice(0, 10)}.${ending}`, file);
  };
  return (
    <Section
      title="Download"
      lead={`A ${isFiles ? "tar archive of its files" : "file with its tables and rows"}, for owners. Only the platform's recovery key opens an encrypted one, with the program age. For a backup of many gigabytes use the command line, which has no browser's limits.`}
    >
      {error !== null && <Problem error={error} />}
      <div className="flex flex-wrap items-center gap-3">
        {!isFiles && <Choice label="Format" options={formats} words={words} value={format} onChange={setFormat} />}
        <Choice label="Encryption" options={seals} words={sealWords} value={seal} onChange={setSeal} />
        <Button icon={<Icon size={14} />} row="database.dump" busy={isBusy} onClick={() => void run(receive)}>
          Download
        </Button>
        <span role="status" className="text-sm text-muted">
          {received !== undefined && error === null && `${bytes(received)} ${isBusy ? "so far" : "saved"}`}
        </span>
      </div>
      <Command>{`berth backups download ${backup.id} --project ${slug}${seal === "age" ? " --age" : ""}`}</Command>
    </Section>
  );
}

interface Received {
  readonly slug: string;
  readonly id: string;
  /** Receives the number of bytes so far. */
  readonly onBytes: (bytes: number) => void;
}

/** Receives a file through a tunnel to the database, in blobs, outside of the page's memory. Throws the platform's reason. */
function receiveFile(client: Client, { slug, id, onBytes }: Received): Promise<Blob> {
  const socket = client.tunnel("database.tunnel", { params: { slug, id } });
  const parts: Blob[] = [];
  let bytes = 0;
  let isWhole = false;
  return new Promise((resolve, reject) => {
    socket.addEventListener("message", ({ data }: MessageEvent<Blob | string>) => {
      if (typeof data === "string") isWhole ||= (JSON.parse(data) as { type?: unknown }).type === "end";
      else {
        parts.push(data);
        onBytes((bytes += data.size));
      }
    });
    socket.addEventListener("close", ({ reason }) =>
      isWhole
        ? resolve(new Blob(parts))
        : reject(new Error(reason === "" ? "The connection to the platform broke." : reason)),
    );
  });
}
