// Creates a container: node -e PROGRAM -- PORT ACCOUNT KEY CONTAINER. The client of the tests has no call for it.
const crypto = require("node:crypto");
const http = require("node:http");
const [port, account, key, container] = process.argv.slice(1);

const path = `/${account}/${container}`;
const headers = { "x-ms-date": new Date().toUTCString(), "x-ms-version": "2021-12-02", "content-length": "0" };
// "Authorize with Shared Key": the verb, eleven headers that are empty here, those of Azure, and the resource, which has the name of
// the account twice where that is part of the path.
const signed = [
  "PUT",
  ..."".padEnd(10, "\n").split("\n"),
  `x-ms-date:${headers["x-ms-date"]}`,
  `x-ms-version:${headers["x-ms-version"]}`,
  `/${account}${path}`,
  "restype:container",
].join("\n");
const signature = crypto.createHmac("sha256", Buffer.from(key, "base64")).update(signed, "utf8").digest("base64");
headers.authorization = `SharedKey ${account}:${signature}`;
const options = { host: "127.0.0.1", port, path: `${path}?restype=container`, method: "PUT", headers };
const request = http.request(options, (answer) => {
  answer.pipe(process.stderr);
  answer.on("end", () => process.exit(answer.statusCode === 201 ? 0 : 1));
});
request.on("error", (error) => {
  console.error(error.message);
  process.exit(1);
});
request.end();
