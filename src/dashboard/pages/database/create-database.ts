export const createDatabase = (slug: string) =>
  ({
    row: "database.create",
    label: "Create a PostgreSQL database",
    input: { params: { slug }, body: {} },
    text: "A database of its own, backed up every day. The application gets its address in DATABASE_URL at its next start.",
  }) as const;
