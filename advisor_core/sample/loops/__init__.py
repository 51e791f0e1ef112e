"""What a rank does around its model: training, pipelines, serving and reinforcement learning, as programs."""
