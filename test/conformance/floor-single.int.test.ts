import { describeRealServers } from "./real-servers.ts";

describeRealServers("floor", 1);
