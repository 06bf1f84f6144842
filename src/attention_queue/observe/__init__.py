"""What the events tell to those who watch: metrics, logs and the port that shows them."""
