"""The loops around the model of a rank: training, pipelines, serving and reinforcement learning, as programs."""
