"""The online profile: services whose users feel a full node, and low-priority pods in the gap they leave."""
