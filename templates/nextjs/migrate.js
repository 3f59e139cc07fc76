// The release command: it runs with every deploy, before requests go to the new version.
const pg = require("pg");

async function migrate() {
  const client = new pg.Client({ connectionString: process.env.DATABASE_URL });
  await client.connect();
  await client.query("create table if not exists note (id serial primary key, text text not null)");
  await client.end();
}

void migrate();
