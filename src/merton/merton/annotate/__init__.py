"""Models x dataset x tasks to answers, actions and scores, every answer kept; see `merton.annotate.run`."""
