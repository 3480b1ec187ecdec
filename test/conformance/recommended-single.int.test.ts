import { describeRealServers } from "./real-servers.ts";

describeRealServers("recommended", 1);
