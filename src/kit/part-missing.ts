/** Thrown instead of creating anew what rows say exists. `part` is a path in the data folder. The message is for users and the operator. */
export class PartMissing extends Error {
  readonly summary: string;
  readonly hint: string;
  constructor(part: string, hint: string) {
    const summary = `${part} is missing from the platform's data folder.`;
    super(`${summary} ${hint}`);
    this.name = "PartMissing";
    this.summary = summary;
    this.hint = hint;
  }
}

export function missingRepository(projectId: string): PartMissing {
  return new PartMissing(
    `repositories/${projectId}`,
    "Its operator restores it from a copy. If it is lost, an empty folder of that name lets the next push start a new repository.",
  );
}

export function missingStorage(projectId: string): PartMissing {
  return new PartMissing(
    `storage/${projectId}`,
    "Its operator restores it from a copy; the application then starts by itself. If the files are lost, an empty folder of that name lets it start without them.",
  );
}

export function missingDatabase(id: string): PartMissing {
  return new PartMissing(
    `databases/${id}`,
    "Its operator restores it from a copy; the database then starts by itself. If it is lost: `berth db create --start-empty`, then restore a backup (`berth backups`).",
  );
}
